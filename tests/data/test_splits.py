import pytest

from data.splits import Folder, overlap, split_names


def test_official_names_of_every_split(tmp_path):
    folder = Folder(str(tmp_path))
    assert folder.questions("train") == tmp_path / "v2_OpenEnded_mscoco_train2014_questions.json"
    assert (
        folder.questions("test-dev") == tmp_path / "v2_OpenEnded_mscoco_test-dev2015_questions.json"
    )
    assert folder.annotations("val") == tmp_path / "v2_mscoco_val2014_annotations.json"
    assert folder.v1_questions("val") == tmp_path / "v1/OpenEnded_mscoco_val2014_questions.json"
    assert folder.human_maps("val") == tmp_path / "human_attention/val"
    assert folder.vocabulary == tmp_path / "vocabulary.json"
    assert folder.answers == tmp_path / "answers.json"


def test_test_dev_shares_images_and_features_with_test(tmp_path):
    folder = Folder(tmp_path)
    assert folder.store("test-dev") == folder.store("test") == tmp_path / "features/test2015.h5"
    assert folder.image_folder("test-dev") == tmp_path / "images/test2015"


def test_a_combination_does_not_depend_on_the_order_of_its_parts(tmp_path):
    assert split_names("val+train") == split_names("train + val") == ("train", "val")
    folder = Folder(tmp_path)
    assert folder.question_files("val+train") == [
        folder.questions("train"),
        folder.questions("val"),
    ]
    assert folder.stores("train+val") == [folder.store("train"), folder.store("val")]


@pytest.mark.parametrize("split", ["vall", "", "train+", "train2014", "train+train"])
def test_a_wrong_split_is_named(split):
    with pytest.raises(ValueError, match="split"):
        split_names(split)


def test_test_and_test_dev_cannot_be_combined():
    with pytest.raises(ValueError, match="test-dev is a part of test"):
        split_names("test+test-dev")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("images/val2014/COCO_val2014_000000000042.jpg", "val"),
        ("images/val2014/COCO_val2014_000000000042.png", "val"),
        ("images/train2014/42.jpg", "train"),
        ("images/test2015/42.png", "test-dev"),
    ],
)
def test_images_are_found_under_each_allowed_name(tmp_path, name, split):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.touch()
    assert Folder(tmp_path).images(split, 42) == path


def test_a_missing_image_is_named_with_what_was_expected(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no image 7; .*COCO_val2014_000000000007.jpg"):
        Folder(tmp_path).images("val", 7)


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
    assert overlap(trained, evaluated) == shared
