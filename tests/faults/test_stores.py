"""Feature stores that are damaged, cut while in use, or hold what is no number."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from data.store import FeatureStore
from scripts import evaluate, select_lambda, verify_features
from tests.data.sample_features import write_sample
from tests.faults.fuzzing import CASES
from tests.small_models import run_here, train_small
from tests.small_runs import ROOT, finish, settings, start, wait_for_step


@pytest.mark.parametrize(("mode", "num_cases"), [("plain", 1200), ("signed", 500)])
def test_a_damaged_store_is_refused_and_crashes_nobody(tmp_path, mode, num_cases):
    """Damaged by chance, or by one who also signs it anew, so that HDF5 gets to parse it."""
    words = [sys.executable, "-m", "tests.faults.damaged_stores", tmp_path, mode, num_cases, 0]
    ran = subprocess.run(
        [str(word) for word in words], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, f"{lines[-1]} {ran.stderr[-2000:]}"
    verdicts = [line.split(" ", 1)[1] for line in lines]
    CASES[f"HDF5 stores, {mode}"] += len(verdicts)
    assert len(verdicts) == num_cases
    assert not [verdict for verdict in verdicts if verdict not in ("refused", "same")]
    assert "refused" in verdicts


def put_nan(path, row):
    """A NaN in a row of the store's third image, behind its back; the image's id."""
    with FeatureStore(path) as store:
        start = int(store.offsets[2]) + row
        offset = store.header.data_offset + 2 * start * store.num_features
        image_id = int(store.image_ids[2])
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(np.array([np.nan], dtype=np.float16).tobytes())
    return image_id


def test_a_training_that_meets_a_nan_names_its_row_and_image(data, tmp_path):
    image_id = put_nan(data.store("train"), 3)
    ran = start(settings(data.root, tmp_path / "runs", "name=bad-row"))
    code, printed = finish(ran)
    error = printed.splitlines()[-1]
    assert code == 2, printed
    assert f"row 3 of image {image_id} in {data.store('train')} is NaN" in error
    assert "Traceback" not in printed


def test_verifying_names_the_row_and_image_of_a_nan(data):
    image_id = put_nan(data.store("train"), 5)
    code, _, error = run_here(verify_features.main, f"store={data.store('train')}", quiet=[])
    assert code == 2
    assert f"{data.store('train')}: 1 images hold NaN" in error
    assert f"{image_id} (row 5)" in error


def test_answers_that_are_no_numbers_are_refused(data, tmp_path):
    run = train_small(data.root, tmp_path / "runs", "sound", "attention=multimodal")
    put_nan(data.store("val"), 0)
    for command, folder in ((evaluate, "evaluate"), (select_lambda, "lambda")):
        code, _, error = run_here(command.main, f"checkpoint={run}", f"data.root={data.root}")
        assert code == 2
        assert "are NaN: its weights or the features" in error
        assert not (run / folder).exists()


def test_a_store_truncated_during_a_training_ends_it_with_the_files_name(data, tmp_path):
    words = ["name=cut", "optim.epochs=500", "runtime.checkpoint_every_minutes=0"]
    process = start(settings(data.root, tmp_path / "runs", *words))
    wait_for_step(tmp_path / "runs" / "cut", 3, process)
    os.truncate(data.store("train"), 5000)
    code, printed = finish(process)
    assert code == 2, printed
    assert "Traceback" not in printed
    assert f"{data.store('train')} was truncated while in use" in printed


CUT_WITHIN_A_COPY = """
import os, sys
import numpy as np
from data.store import FeatureStore
from scripts.entry import name_fatal_signals
name_fatal_signals()
store = FeatureStore(sys.argv[1])
store.refuse_cut = lambda place: os.truncate(store.path, 5000)  # right after it was looked at
store.copy_rows(0, np.empty_like(store.features[: store.offsets[1]]))
"""


def test_a_store_truncated_within_a_copy_is_named_by_the_fatal_signal(tmp_path):
    path = tmp_path / "features.h5"
    write_sample(path, {1: (19, 25), 2: (2, 3)}, num_features=64)
    ran = subprocess.run(
        [sys.executable, "-c", CUT_WITHIN_A_COPY, path], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == -signal.SIGBUS
    assert f'File "{path}", line' in ran.stderr
    assert "in truncated_while_in_use" in ran.stderr


def test_a_store_replaced_by_rename_during_a_training_does_it_no_harm(data, tmp_path):
    shutil.copy(data.store("train"), tmp_path / "other.h5")
    process = start(settings(data.root, tmp_path / "runs", "name=renamed", "optim.epochs=6"))
    wait_for_step(tmp_path / "runs" / "renamed", 1, process)
    os.replace(tmp_path / "other.h5", data.store("train"))
    code, printed = finish(process)
    assert code == 0, printed
    assert "now names another file" in printed
