"""The dataset as files: official, decidable, deterministic, whole or absent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.backbones.patch.descriptor import describe
from data.features.reader import FeatureStore
from data.human_attention.vqa_hat import list_mapped_questions, read_distributions
from data.io.atomic_files import read_json
from data.shapes import build
from data.shapes.build import Sizes, build_shapes, claim
from data.shapes.report import CEILING, describe_dataset, measure_baselines
from data.text.answer_list import AnswerList
from data.text.vocabulary import Vocabulary
from data.vqa.data_folder import DataFolder
from data.vqa.question_only import load_annotated
from tests.data.shapes.oracle import derive

SMALL = Sizes(train=100, val=30, test=8, human=30)
TINY = Sizes(train=12, val=2, test=2, human=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """A small dataset made by two workers."""
    root = tmp_path_factory.mktemp("data") / "shapes"
    assert build_shapes(root, sizes=SMALL, num_workers=2)
    return DataFolder(root)


def test_an_oracle_derives_the_majority_answer_of_every_question(folder: DataFolder) -> None:
    scenes = read_json(folder.root / "shapes_metadata.json")["scenes"]
    for split in ("train", "val"):
        for annotation, text in zip(*load_annotated(folder, split), strict=True):
            answer = derive(text, scenes[str(annotation.image_id)])
            assert answer == annotation.multiple_choice_answer
            assert annotation.answers.count(answer) >= 6


def test_official_loaders_read_every_split(folder: DataFolder) -> None:
    sizes = {}
    for split in ("train", "val", "test", "test-dev"):
        questions = folder.read_questions(split)
        sizes[split] = len(questions)
        with FeatureStore(folder.store(split)) as store:
            for image_id in np.unique(questions.image_ids).tolist():
                height, width = store.size(image_id)
                with Image.open(folder.image(split, image_id)) as image:
                    assert image.size == (24 * width, 24 * height)
            assert store.manifest.stride == 24
    assert sizes == {"train": 1000, "val": 300, "test": 80, "test-dev": 20}
    test, part = (set(folder.read_questions(name).ids.tolist()) for name in ("test", "test-dev"))
    assert part < test


def test_stored_features_are_the_description_of_the_stored_picture(folder: DataFolder) -> None:
    with FeatureStore(folder.store("val")) as store:
        for image_id in store.image_ids[:5].tolist():
            with Image.open(folder.image("val", image_id)) as image:
                described = describe(image).reshape(-1, store.num_features).astype(np.float16)
            np.testing.assert_array_equal(store.rows(image_id), described)


def test_vocabulary_knows_every_word_and_the_list_nearly_every_answer(folder: DataFolder) -> None:
    vocabulary, answers = Vocabulary.load(folder.vocabulary), AnswerList.load(folder.answers)
    for split in ("train", "val", "test"):
        for text in folder.read_questions(split).texts:
            assert 1 not in vocabulary.encode(text, 14)
    given = [each.multiple_choice_answer for each in folder.read_annotations("val")]
    assert np.mean([answer in answers.index for answer in given]) > 0.95


def test_simple_baselines_stay_below_half_and_the_truth_reaches_all(folder: DataFolder) -> None:
    scores = measure_baselines(folder)
    assert scores.pop(CEILING) > 97
    assert len(scores) == 5
    assert max(scores.values()) < 50
    assert "15 templates" in describe_dataset(folder)


def test_human_maps_join_by_v1_ids_and_lie_on_the_objects_that_matter(folder: DataFolder) -> None:
    metadata = read_json(folder.root / "shapes_metadata.json")
    looked_at = list_mapped_questions(folder, "val")
    assert len(looked_at) == 30
    on_objects = []
    for looked in looked_at:
        scene = metadata["scenes"][str(looked.image_id)]
        question_id = looked.question_id // 10 * 1000 + looked.question_id % 10
        question = metadata["questions"][str(question_id)]
        assert derive(looked.text, scene) == question["answer"]
        near = np.zeros((scene["height"], scene["width"]), dtype=bool)
        for number in question["objects"]:
            left, top, right, bottom = scene["objects"][number]["box"]
            near[int(max(top - 1, 0)) : int(bottom) + 2, int(max(left - 1, 0)) : int(right) + 2] = 1
        maps = read_distributions(looked, *near.shape)
        on_objects += [cells[near.reshape(-1)].sum() for cells in maps]
    assert len(on_objects) > 60
    assert np.mean(on_objects) > 0.8


def test_same_seed_gives_the_same_bytes_whatever_the_number_of_workers(tmp_path: Path) -> None:
    files = []
    for num_workers in (1, 2):
        root = tmp_path / str(num_workers)
        build_shapes(root, seed=5, sizes=TINY, num_workers=num_workers)
        paths = [path for path in root.rglob("*") if path.is_file()]
        files.append({str(path.relative_to(root)): path.read_bytes() for path in paths})
    one, two = files
    assert sorted(one) == sorted(two)
    assert [name for name in one if one[name] != two[name]] == []


def test_second_build_does_nothing_and_another_seed_is_rejected_until_forced(
    tmp_path: Path,
) -> None:
    root = tmp_path / "shapes"
    assert build_shapes(root, sizes=TINY, num_workers=1)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert not build_shapes(root, sizes=TINY, num_workers=1)
    assert before == {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    with pytest.raises(ValueError, match=r"'seed': 0.*'seed': 1.*data.force=true"):
        build_shapes(root, seed=1, sizes=TINY, num_workers=1)
    assert build_shapes(root, seed=1, sizes=TINY, num_workers=1, force=True)
    assert read_json(root / "shapes.json")["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["shapes"]


def test_a_link_to_the_folder_stays_and_the_dataset_goes_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    root = tmp_path / "shapes"
    for link in (root, tmp_path / ".scratch.old"):  # the latter is where a link was renamed to
        link.symlink_to(tmp_path / "scratch")
    assert build_shapes(root, sizes=TINY, num_workers=1)
    assert build_shapes(root, seed=1, sizes=TINY, num_workers=1, force=True)
    assert root.is_symlink()
    assert read_json(tmp_path / "scratch" / "shapes.json")["seed"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scratch", "shapes"]


def test_a_folder_with_other_files_is_left_alone_even_when_forced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not delete")
    with pytest.raises(ValueError, match=r"no shapes\.json"):
        build_shapes(tmp_path, sizes=TINY, num_workers=1, force=True)
    assert (tmp_path / "thesis.txt").read_text() == "do not delete"


def test_killed_build_leaves_no_dataset_and_the_next_one_succeeds(tmp_path: Path) -> None:
    root = tmp_path / "shapes"
    code = (
        "from pathlib import Path; from data.shapes.build import *\n"
        f"build_shapes(Path({str(root)!r}), sizes=Sizes(train=80, val=2, test=2), num_workers=1)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    pictures = tmp_path / ".shapes.partial" / "images" / "train2014"
    deadline = time.monotonic() + 600
    while not (pictures.is_dir() and any(pictures.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert any(pictures.iterdir())
    assert not root.exists()
    assert build_shapes(root, sizes=TINY, num_workers=1)
    assert [path.name for path in tmp_path.iterdir()] == ["shapes"]


def test_two_runs_do_not_fill_one_folder(tmp_path: Path) -> None:
    with (
        claim(tmp_path / ".shapes.partial"),
        pytest.raises(ValueError, match="another run is filling"),
    ):
        build_shapes(tmp_path / "shapes", sizes=TINY, num_workers=1)


@pytest.mark.parametrize("root", [".", "..", "inner/.."])
def test_the_folder_one_is_in_is_rejected_before_anything_is_drawn(tmp_path, monkeypatch, root):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(build, "fill", lambda *arguments: pytest.fail("it was begun"))
    if root == "..":
        monkeypatch.setattr(build, "is_there", lambda *arguments: False)
    with pytest.raises(ValueError, match="is the folder this runs in"):
        build.build_shapes(Path(root))
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"seed": -1}, "seed is -1, expected 0 or more"), ({"num_workers": 0}, "num_workers is 0")],
)
def test_numbers_that_make_no_sense_are_rejected(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        build.build_shapes(tmp_path / "shapes", **options)
