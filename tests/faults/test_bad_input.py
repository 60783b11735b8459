"""Errors in the data: a missing image, an image in two stores, results that do not fit."""

import json

import numpy as np
import pytest

from data.features.reader import FeatureStore
from data.features.writer import StoreWriter
from data.vqa.questions import load_questions
from scripts import score, train
from tests.small_models import run_here
from tests.small_runs import settings


def rewrite(path, change):
    """Write the store again after `change` has edited {image_id: rows} and {image_id: size}."""
    with FeatureStore(path) as store:
        rows = {int(n): store.rows(int(n)).copy() for n in store.image_ids}
        sizes = {n: store.size(n) for n in rows}
        num_features, backbone = store.num_features, store.manifest.backbone
    change(rows, sizes)
    path.unlink()
    with StoreWriter(path, sizes, num_features, source="test", backbone=backbone) as writer:
        for image_id, content in rows.items():
            writer.write(image_id, content)


def rejected_training(data, tmp_path, *more):
    """The error message of a training run that must not start."""
    words = settings(data.root, tmp_path / "runs", "name=rejected", *more)
    code, _, error = run_here(train.main, *words, quiet=[])
    assert code == 2, error
    assert error.count("\n") == 1
    assert error.startswith("error: ")
    assert not (tmp_path / "runs" / "rejected").exists()
    return error


def test_a_run_whose_name_is_a_number_is_rejected(data, tmp_path):
    words = settings(data.root, tmp_path / "runs", "name=2024")
    code, _, error = run_here(train.main, *words, quiet=[])
    assert (code, error.count("\n")) == (2, 1)
    assert "name must be text" in error


def test_a_question_without_its_image_is_named(data, tmp_path):
    missing = int(load_questions([data.questions("train")]).image_ids[0])

    def remove(rows, sizes):
        del rows[missing], sizes[missing]

    rewrite(data.store("train"), remove)
    error = rejected_training(data, tmp_path)
    assert f"1 images are not in {data.store('train')}, the first is {missing}" in error


def test_two_stores_with_different_features_of_one_image_are_named(data, tmp_path):
    with FeatureStore(data.store("train")) as store:
        shared = int(store.image_ids[0])
        size, width = store.size(shared), store.num_features

    def add_image(rows, sizes):
        sizes[shared] = size
        rows[shared] = np.ones((size[0] * size[1], width), dtype=np.float16)

    rewrite(data.store("val"), add_image)
    error = rejected_training(data, tmp_path, "train_split=train+val")
    assert f"image {shared} has different features in" in error
    assert str(data.store("train")) in error
    assert str(data.store("val")) in error


def repeat(entries):
    return [*entries, entries[0]], "1 question ids occur more than once"


def omit(entries):
    return entries[1:], "questions are missing"


def add(entries):
    return [*entries, {"question_id": 123456789, "answer": "yes"}], "ids are not in the question"


def number(entries):
    return [{**entries[0], "answer": 2}, *entries[1:]], "1 answers are not strings"


def nothing(entries):
    return [{**entries[0], "answer": None}, *entries[1:]], "1 answers are not strings"


@pytest.mark.parametrize("change", [repeat, omit, add, number, nothing], ids=lambda f: f.__name__)
def test_invalid_results_are_rejected_before_anything_is_written(data, tmp_path, change):
    ids = load_questions([data.questions("val")]).ids.tolist()
    entries, message = change([{"question_id": n, "answer": "yes"} for n in ids])
    results, output = tmp_path / "results.json", tmp_path / "scores.json"
    results.write_text(json.dumps(entries))
    words = [f"questions={data.questions('val')}", f"annotations={data.annotations('val')}"]
    code, printed, error = run_here(
        score.main, *words, f"results={results}", f"output={output}", quiet=[]
    )
    assert (code, printed) == (2, "")
    assert error.count("\n") == 1
    assert message in error
    assert "results.json" in error
    assert not output.exists()
