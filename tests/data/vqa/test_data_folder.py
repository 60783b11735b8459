import pytest

from data.batching.examples import load_examples
from data.text.word_lists import prepare_words
from data.vqa import data_folder
from data.vqa.data_folder import DataFolder
from data.vqa.inventory import take_inventory
from data.vqa.layout import LAYOUTS, VQA_V2, Layout, register_layout
from data.vqa.results import result_name
from mcan.training.summary import suggest_commands
from tests.data.sample_folder import fill_folder


def test_official_names_of_every_split_and_test_dev_shares_those_of_test(tmp_path):
    folder = DataFolder(str(tmp_path))
    for path, name in (
        (folder.questions("train"), "v2_OpenEnded_mscoco_train2014_questions.json"),
        (folder.questions("test-dev"), "v2_OpenEnded_mscoco_test-dev2015_questions.json"),
        (folder.annotations("val"), "v2_mscoco_val2014_annotations.json"),
        (folder.v1_questions("val"), "v1/OpenEnded_mscoco_val2014_questions.json"),
        (folder.human_maps("val"), "human_attention/val"),
        (folder.store("test"), "features/test2015.h5"),
        (folder.store("test-dev"), "features/test2015.h5"),
        (folder.image_folder("test-dev"), "images/test2015"),
        (folder.vocabulary, "vocabulary.json"),
        (folder.answers, "answers.json"),
    ):
        assert path == tmp_path / name


def test_a_combination_does_not_depend_on_the_order_of_its_parts(tmp_path):
    assert VQA_V2.split_names("val+train") == VQA_V2.split_names("train + val") == ("train", "val")
    folder = DataFolder(tmp_path)
    assert folder.question_files("val+train") == [
        folder.questions("train"),
        folder.questions("val"),
    ]
    assert folder.stores("train+val") == [folder.store("train"), folder.store("val")]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        *((name, "no split '") for name in ("vall", "", "train+", "train2014")),
        ("train+train", "names a part twice"),
        ("test+test-dev", "test-dev is a part of test"),
        *((name, "'vg' is for training alone") for name in ("vg", "train+vg")),
    ],
)
def test_a_wrong_split_is_named(split, message):
    with pytest.raises(ValueError, match=message):
        VQA_V2.split_names(split)


def test_visual_genome_adds_questions_about_images_of_train_and_val(tmp_path):
    folder = DataFolder(tmp_path)
    assert VQA_V2.divide_training("train+val+vg") == ("train+val", ("vg",))
    assert VQA_V2.divide_training("val + train") == ("val+train", ())
    both = [folder.store("train"), folder.store("val")]
    assert folder.training_stores("train+vg") == folder.training_stores("vg+val+train") == both
    assert folder.training_stores("train") == both[:1]
    for split, message in (
        ("vg", "'vg' is for training alone"),
        ("train+vg+vg", "names a part twice"),
        ("train+nothing+vg", "no split 'nothing'"),
    ):
        with pytest.raises(ValueError, match=message):
            VQA_V2.divide_training(split)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("images/val2014/COCO_val2014_000000000042.jpg", "val"),
        ("images/val2014/COCO_val2014_000000000042.png", "val"),
        ("images/train2014/42.jpg", "train"),
        ("images/test2015/42.png", "test-dev"),
        ("images/val2014/42.JPG", "val"),
        ("images/val2014/0042.jpeg", "val"),
        ("images/val2014/COCO_train2014_000000000042.jpg", "val"),
    ],
)
def test_images_are_found_under_each_allowed_name(tmp_path, name, split):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.touch()
    assert DataFolder(tmp_path).image(split, 42) == path


def test_a_missing_image_is_named_with_what_was_expected(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no image 7; .*COCO_val2014_000000000007.jpg"):
        DataFolder(tmp_path).image("val", 7)


@pytest.mark.parametrize(
    ("trained", "evaluated", "shared"),
    [
        ("train", "val", ()),
        ("train+val", "val", ("val",)),
        ("val+train", "train+val", ("train", "val")),
        ("train+val", "test-dev", ()),
        ("test", "test-dev", ("test-dev",)),
    ],
)
def test_overlap_names_the_parts_a_model_was_trained_on(trained, evaluated, shared):
    assert VQA_V2.overlap(trained, evaluated) == shared


@pytest.fixture
def own_layout(monkeypatch):
    """Other splits than VQA-v2's, under the name "mine", which other tests do not see."""
    monkeypatch.setattr(LAYOUTS, "values", dict(LAYOUTS.values))
    splits = ("train", "minival", "testdev")
    return register_layout(
        "mine",
        Layout(
            subtypes={split: (split, split) for split in splits},
            annotated=("train", "minival"),
            questions="{split}/q.json",
            annotations="{split}/a.json",
            image_folder="photos",
            image_names=("{images}-{image_id}.webp",),
        ),
    )


def test_a_layout_of_ones_own_has_its_own_files_and_splits(tmp_path, own_layout):
    folder = DataFolder(tmp_path, "mine")
    assert folder.questions("testdev") == tmp_path / "testdev/q.json"
    assert folder.image_names("minival", 7) == ["minival-7.webp"]
    fill_folder(tmp_path, ("train", "minival", "testdev"), layout="mine")
    both = "minival+train"
    assert len(folder.read_questions(both)) == len(folder.read_annotations(both)) == 40
    assert prepare_words(folder).built
    lacking = take_inventory(folder).lacking
    assert [line.split(":")[0] for line in lacking] == ["train", "minival", "testdev"]  # features
    assert own_layout.split_names(both) == ("train", "minival")
    assert own_layout.overlap("train+val", both) == ("train",)
    examples = load_examples(folder, "testdev", prepare_words(folder))
    assert len(examples) == 20
    assert not examples.has_answers
    assert result_name(both, "a", own_layout) == (
        "vqa_OpenEnded_mscoco_train+minival_a_results.json"
    )


@pytest.mark.usefixtures("own_layout")
def test_a_split_that_a_layout_lacks_is_absent_or_one_sentence(tmp_path):
    folder = fill_folder(tmp_path, ("train", "minival"), layout="mine")
    assert folder.has_questions("minival")
    assert folder.has_annotations("train + minival")
    for split in ("test", "testdev", "val"):
        assert not folder.has_questions(split)
        assert not folder.has_annotations(split)
        assert not folder.has_annotations(f"train+{split}")
    for ask in (folder.questions, folder.store, folder.read_questions, folder.stores):
        with pytest.raises(ValueError, match="no split 'test'; choose from train, minival, testd"):
            ask("test")
    assert "export" not in suggest_commands(tmp_path, folder, selects_components=True)


def test_a_layout_says_which_of_its_splits_are_annotated():
    with pytest.raises(ValueError, match=r"splits a, b must say .* annotations"):
        Layout(subtypes={"a": ("a", "a"), "b": ("b", "b")})


def test_a_layout_that_is_unknown_or_taken_is_named(tmp_path):
    with pytest.raises(ValueError, match="no layout of data folders 'mine'; there are vqa_v2"):
        DataFolder(tmp_path, "mine")
    with pytest.raises(ValueError, match="named 'vqa_v2' is already registered"):
        register_layout("vqa_v2", Layout(questions="q.json"))


def test_a_file_is_read_once_until_it_is_released(tmp_path, monkeypatch):
    folder = fill_folder(tmp_path)
    parsed = []
    for name in ("read_questions", "read_annotations"):
        read = getattr(data_folder, name)
        monkeypatch.setattr(
            data_folder, name, lambda path, read=read: parsed.append(path) or read(path)
        )
    for split in ("train", "val", "train+val", "val"):
        assert len(folder.read_questions(split)) == len(folder.read_annotations(split))
    files = [*folder.question_files("train+val"), *folder.annotation_files("train+val")]
    assert sorted(parsed) == sorted(files)
    folder.release("train+val")
    folder.read_annotations("val")
    assert parsed[len(files) :] == [folder.annotations("val")]
