"""Feature stores that are damaged, truncated while in use, or contain NaN."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial

import pytest

from scripts import evaluate, select_lambda, train, verify_features
from tests.data.features.sample_features import write_sample
from tests.faults.damaged_stores import write_nan
from tests.faults.runs import errors_of, hold_in_step, launch_trapped, wait_for
from tests.small_models import read_error, run_here
from tests.small_runs import HANG, ROOT, settings


@pytest.fixture
def image_id(data):
    """The third image of both stores has a NaN in its row 3."""
    write_nan(data.store("val"), row=3)
    return write_nan(data.store("train"), row=3)


def test_a_training_run_that_reads_a_nan_names_its_row_and_image(data, image_id, tmp_path):
    words = settings(data.root, tmp_path / "runs", "name=bad-row")
    error = read_error(train.main, *words, quiet=[])
    assert f"row 3 of image {image_id} in {data.store('train')} is NaN" in error


def test_verify_features_names_the_row_and_image_of_a_nan(data, image_id):
    code, _, error = run_here(verify_features.main, f"store={data.store('train')}", quiet=[])
    assert code == 2
    assert f"{data.store('train')}: 1 images hold NaN" in error
    assert f"{image_id} (row 3)" in error


@pytest.mark.parametrize("command", [evaluate, select_lambda])
def test_predictions_that_are_nan_are_rejected(data, image_id, multimodal_run, tmp_path, command):
    words = f"checkpoint={multimodal_run}", f"data.root={data.root}", f"output={tmp_path / 'out'}"
    assert "are NaN: its weights or the features" in read_error(command.main, *words)
    assert not (tmp_path / "out").exists()


def train_while(change, data, tmp_path):
    """Train while something happens to the store, in the second of six epochs: how it ends."""
    words = settings(data.root, tmp_path / "runs", "name=changed", "optim.epochs=6")
    process = hold_in_step(words, tmp_path / "trace", 25)
    change(data.store("train"))
    (tmp_path / "trace").unlink()  # the run goes on
    return process.end()


def test_a_store_truncated_during_training_is_named_in_the_error(data, tmp_path):
    code, printed = train_while(lambda store: os.truncate(store, 5000), data, tmp_path)
    assert code == 2, printed
    (error,) = errors_of(printed)
    assert f"{data.store('train')} was truncated while in use" in error


COPY = """
import sys
from concurrent.futures import ThreadPoolExecutor
from data.features.reader import FeatureStore
store = FeatureStore(sys.argv[1], reader="pread")
def copy(first):
    while True:
        for image_id in store.image_ids[first:]:
            store.rows(image_id)
pool = ThreadPoolExecutor(3)
tasks = [pool.submit(copy, first) for first in range(3)]
print("copies", flush=True)
print(*(task.exception() for task in tasks), sep="\\n")
"""


@pytest.mark.parametrize("share", [0, 0.2, 0.5, 0.9, 0.999])
def test_pread_survives_a_store_truncated_during_copies(tmp_path, share):
    """In a process of its own: a reader that is not safe would be killed by SIGBUS."""
    store = tmp_path / "cut.h5"
    write_sample(store, sizes=dict.fromkeys(range(1, 9), (20, 30)), num_features=1000)
    words = [sys.executable, "-c", COPY, str(store)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "copies\n"
        os.truncate(store, int(share * store.stat().st_size))
        printed, _ = process.communicate(timeout=HANG)
    assert process.returncode == 0
    errors = printed.splitlines()
    assert len(errors) == 3
    assert all(re.match(rf"{store} was (truncated|changed) while in use", e) for e in errors)


def test_a_store_truncated_during_the_copies_of_a_training_run_is_named(data, tmp_path):
    words = settings(data.root, tmp_path / "runs", "name=cut", "optim.epochs=100000")
    process = launch_trapped([*words, "runtime.reader=pread"], tmp_path / "trace")
    wait_for(tmp_path / "trace", "step", process)
    os.truncate(data.store("train"), 5000)
    code, printed = process.end()
    assert code == 2, printed
    (error,) = errors_of(printed)
    assert re.search(rf"{data.store('train')} was (truncated|changed) while in use", error)


def test_a_store_replaced_by_rename_during_training_is_read_to_the_end(data, tmp_path):
    shutil.copy(data.store("train"), tmp_path / "other.h5")
    code, printed = train_while(partial(os.replace, tmp_path / "other.h5"), data, tmp_path)
    assert code == 0, printed
    assert "now names another file" in printed
