"""What a training run reads and says of its data, and of what to run when it has ended."""

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from data.features.reader import FeatureStore
from data.features.writer import StoreWriter
from data.io.atomic_files import write_json
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_questions
from mcan.checkpoint import load_checkpoint
from mcan.training.preparation import prepare_data
from mcan.training.summary import suggest_commands
from scripts import evaluate, train
from tests.data.vqa.official_files import make_annotation, make_question
from tests.small_models import read_error, run_here
from tests.small_runs import compose, settings, train_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def rewrite(path, backbone="patch", without=None, ones=None):
    """Write a store again: of another backbone, without an image, or with one more, of ones."""
    with FeatureStore(path) as store:
        rows = {int(n): store.rows(int(n)).copy() for n in store.image_ids if n != without}
        sizes = {n: store.size(n) for n in rows}
        num_features = store.num_features
    if ones is not None:
        sizes[ones], rows[ones] = (1, 2), np.ones((2, num_features), dtype=np.float16)
    path.unlink()
    with StoreWriter(path, sizes, num_features, source="test", backbone=backbone) as writer:
        for image_id, content in rows.items():
            writer.write(image_id, content)


def change_backbone(train_store, val_store, image_id):
    rewrite(val_store, backbone="R-50")
    parts = f"{val_store} holds 69 features per cell of backbone R-50", f"{train_store} 69 features"
    return *parts, "per cell of backbone patch"


def remove_image(train_store, val_store, image_id):
    rewrite(train_store, without=image_id)
    return (f"1 images are not in {train_store}, the first is {image_id}",)


def repeat_image(train_store, val_store, image_id):
    rewrite(val_store, ones=image_id)
    return f"image {image_id} has different features in", str(train_store), str(val_store)


@pytest.mark.parametrize(
    ("spoil", "split"),
    [(change_backbone, "train"), (remove_image, "train"), (repeat_image, "train+val")],
)
def test_stores_that_do_not_fit_the_questions_or_each_other_are_named_before_a_run_starts(
    data, tmp_path, spoil, split
):
    image_id = int(load_questions([data.questions("train")]).image_ids[0])
    expected = spoil(data.store("train"), data.store("val"), image_id)
    words = settings(data.root, tmp_path / "runs", "name=rejected", f"train_split={split}")
    error = read_error(train.main, *words, quiet=[])
    assert all(part in error for part in expected), error
    assert not (tmp_path / "runs" / "rejected").exists()


@pytest.fixture
def opened(monkeypatch):
    """How often each file was opened for reading, by its name."""
    counts = Counter()
    original = io.open

    def counting(file, mode="r", *arguments, **options):
        if isinstance(file, (str, Path)) and "r" in mode:
            counts[Path(file).name] += 1
        return original(file, mode, *arguments, **options)

    monkeypatch.setattr("builtins.open", counting)
    monkeypatch.setattr(io, "open", counting)  # pathlib's
    return counts


@pytest.mark.parametrize("words", ["missing", "built"])
def test_each_file_of_questions_and_annotations_is_opened_once(data, tmp_path, opened, words):
    if words == "missing":
        data.vocabulary.unlink(missing_ok=True)
        data.answers.unlink(missing_ok=True)
    train_here(settings(data.root, tmp_path / "runs", "name=counted"))
    files = [
        read(split) for split in ("train", "val") for read in (data.questions, data.annotations)
    ]
    assert {path.name: opened[path.name] for path in files} == {path.name: 1 for path in files}
    assert opened[data.questions("test").name] == 0


@pytest.mark.parametrize(("asked", "noticed"), [(4, True), (9, False), (5, False), (3, False)])
def test_a_threshold_that_the_answers_were_not_built_with_is_noticed(data, capsys, asked, noticed):
    data.answers.unlink()
    prepare_words(data, 5)
    words = settings(data.root, data.root, f"data.min_answer_count={asked}")
    prepare_data(compose(words), data)
    notice = f"{data.answers} was built with data.min_answer_count=5, not 4; delete it"
    assert (notice in capsys.readouterr().out) == noticed


def test_what_to_run_next_can_be_run(tmp_path):
    folder, run = DataFolder(tmp_path), tmp_path / "a run"
    lines = suggest_commands(run, folder, selects_components=False)
    assert f"  make evaluate CHECKPOINT='{run}'" in lines
    assert "make lambda" not in lines
    assert "make export" not in lines  # there are no test questions
    write_json(folder.questions("test"), {"questions": [make_question(5)]})
    assert f"  make export CHECKPOINT='{run}'" in suggest_commands(run, folder, True)
    lines = suggest_commands(run, folder, True, ["my_heads", "mine"]).splitlines()[1:]
    assert all(line.endswith(f"='{run}' ARGS='modules=[my_heads,mine]'") for line in lines)


def write_visual_genome(data, number):
    """Questions with one answer each about images of train and val, under ids that these have."""
    official = load_questions(data.question_files("train+val"))
    rows = np.linspace(0, len(official) - 1, number).astype(int).tolist()
    ids, images = official.ids.tolist(), official.image_ids.tolist()
    asked = [make_question(ids[n], "is there a zebra?", images[n]) for n in rows]
    entries = [make_annotation(ids[n], ["no"], "no", images[n]) for n in rows]
    write_json(data.root / "VG_questions.json", {"questions": asked})
    write_json(data.root / "VG_annotations.json", {"annotations": entries})


def test_visual_genomes_questions_are_trained_on_and_change_no_words(data, tmp_path):
    words = prepare_words(data)
    write_visual_genome(data, 30)
    more = ["optim.epochs=1", "attention=discrete"]
    for name, split in (("plain", "train+val"), ("more", "train+val+vg")):
        train_here(settings(data.root, tmp_path, f"name={name}", f"train_split={split}", *more))
    plain, extra = (load_checkpoint(tmp_path / name / "last.pt") for name in ("plain", "more"))
    assert extra["train_split"] == "train+val+vg"
    assert extra["progress"]["global_step"] > plain["progress"]["global_step"]
    assert extra["vocabulary"] == plain["vocabulary"] == words.vocabulary.state()
    assert extra["answers"] == plain["answers"] == words.answers.state()
    code, printed, error = run_here(
        evaluate.main, f"checkpoint={tmp_path / 'more'}", f"output={tmp_path / 'e'}"
    )
    assert code == 0, error
    assert "WARNING" in printed  # val was trained on


def test_without_its_files_visual_genome_is_asked_for_before_a_run_starts(data, tmp_path):
    words = settings(data.root, tmp_path, "name=r", "train_split=train+val+vg")
    error = read_error(train.main, *words, quiet=[])
    assert f"{data.root / 'VG_questions.json'} does not exist; 'vg' is Visual Genome's" in error
    assert "github.com/MILVLG/mcan-vqa" in error
    assert not (tmp_path / "r").exists()
    error = read_error(train.main, *words[:-1], "val_split=val+vg", quiet=[])
    assert "'vg' is for training alone" in error
