"""Feature stores that are damaged, truncated while in use, or contain NaN."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from data.features.reader import FeatureStore
from scripts import evaluate, select_lambda, verify_features
from tests.faults.fuzzing import CASES
from tests.small_models import run_here, train_small
from tests.small_runs import ROOT, finish, settings, start, wait_for_step


@pytest.mark.parametrize(("mode", "num_cases"), [("plain", 1200), ("signed", 500)])
def test_a_damaged_store_is_rejected_without_a_crash(tmp_path, mode, num_cases):
    """Damaged at random, also with the checksum updated, so that HDF5 parses the damaged bytes."""
    words = [sys.executable, "-m", "tests.faults.damaged_stores", tmp_path, mode, num_cases, 0]
    ran = subprocess.run(
        [str(word) for word in words], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, f"{lines[-1]} {ran.stderr[-2000:]}"
    outcomes = [line.split(" ", 1)[1] for line in lines]
    CASES[f"HDF5 stores, {mode}"] += len(outcomes)
    assert len(outcomes) == num_cases
    assert not [outcome for outcome in outcomes if outcome not in ("rejected", "same")]
    assert "rejected" in outcomes


def put_nan(path, row):
    """Write a NaN into a row of the store's third image; the image's id."""
    with FeatureStore(path) as store:
        start = int(store.offsets[2]) + row
        offset = store.header.data_offset + 2 * start * store.num_features
        image_id = int(store.image_ids[2])
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(np.array([np.nan], dtype=np.float16).tobytes())
    return image_id


def test_a_training_run_that_reads_a_nan_names_its_row_and_image(data, tmp_path):
    image_id = put_nan(data.store("train"), 3)
    ran = start(settings(data.root, tmp_path / "runs", "name=bad-row"))
    code, printed = finish(ran)
    error = printed.splitlines()[-1]
    assert code == 2, printed
    assert f"row 3 of image {image_id} in {data.store('train')} is NaN" in error
    assert "Traceback" not in printed


def test_verify_features_names_the_row_and_image_of_a_nan(data):
    image_id = put_nan(data.store("train"), 5)
    code, _, error = run_here(verify_features.main, f"store={data.store('train')}", quiet=[])
    assert code == 2
    assert f"{data.store('train')}: 1 images hold NaN" in error
    assert f"{image_id} (row 5)" in error


def test_predictions_that_are_nan_are_rejected(data, tmp_path):
    run = train_small(data.root, tmp_path / "runs", "valid", "attention=multimodal")
    put_nan(data.store("val"), 0)
    for command, folder in ((evaluate, "evaluate"), (select_lambda, "lambda")):
        code, _, error = run_here(command.main, f"checkpoint={run}", f"data.root={data.root}")
        assert code == 2
        assert "are NaN: its weights or the features" in error
        assert not (run / folder).exists()


def test_a_store_truncated_during_training_is_named_in_the_error(data, tmp_path):
    words = ["name=cut", "optim.epochs=500", "runtime.checkpoint_every_minutes=0"]
    process = start(settings(data.root, tmp_path / "runs", *words))
    wait_for_step(tmp_path / "runs" / "cut", 3, process)
    os.truncate(data.store("train"), 5000)
    code, printed = finish(process)
    assert code == 2, printed
    assert "Traceback" not in printed
    assert f"{data.store('train')} was truncated while in use" in printed


def test_a_store_replaced_by_rename_during_training_is_read_to_the_end(data, tmp_path):
    shutil.copy(data.store("train"), tmp_path / "other.h5")
    process = start(settings(data.root, tmp_path / "runs", "name=renamed", "optim.epochs=6"))
    wait_for_step(tmp_path / "runs" / "renamed", 1, process)
    os.replace(tmp_path / "other.h5", data.store("train"))
    code, printed = finish(process)
    assert code == 0, printed
    assert "now names another file" in printed
