"""One of two processes dies, gets a NaN or freezes: all end soon, and the error names the cause."""

import re
import shutil
import time

import numpy as np
import pytest

from data.batching.examples import load_examples
from data.batching.sampler import TrainingBatches
from data.features.reader import FeatureStore
from data.features.store_set import open_stores
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from mcan.checkpoint import load_checkpoint
from tests.faults import moments
from tests.faults.runs import (
    AT_EVERY_STEP,
    Run,
    assert_matches_reference,
    errors_of,
    launch_trapped,
)
from tests.small_runs import compose, train_command

SOON = 60  # seconds


def wait_for_trap(process):
    """Read the output up to the trap's line; the time at which it was triggered."""
    for line in process.stdout:
        if line.startswith("TRAP"):
            return time.monotonic()
    raise AssertionError("the trap was not triggered")


@pytest.mark.parametrize("rank", [0, 1])
def test_one_process_dies(words, references, runs, rank):
    name = f"dies_{rank}"
    process = launch_trapped(
        [*words, f"name={name}", AT_EVERY_STEP],
        runs / f"{name}.trace",
        2,
        place=moments.IN_STEP,
        passage=6,
        rank=rank,
        action="kill",
    )
    triggered = wait_for_trap(process)
    code, printed = process.end(SOON)
    assert time.monotonic() - triggered < SOON
    assert code == 1
    lost = f"error: process {1 - rank} of 2 got no reply from another process: it has ended"
    killed = f"error: process {rank} was killed by SIGKILL; resume=true continues"
    errors = errors_of(printed)
    assert all(error.startswith((lost, killed)) for error in errors), printed
    assert errors[-1].startswith(killed)
    assert_matches_reference(runs / name, references[2])


def test_one_process_freezes(words, references, runs):
    """SIGSTOP: it keeps its connections but is silent; runtime.timeout_minutes is the limit."""
    process = launch_trapped(
        [*words, "name=freezes", AT_EVERY_STEP, "runtime.timeout_minutes=0.2"],
        runs / "freezes.trace",
        2,
        place=moments.IN_STEP,
        passage=6,
        rank=1,
        action="freeze",
    )
    triggered = wait_for_trap(process)
    code, printed = process.end(12 + SOON)
    assert time.monotonic() - triggered < 12 + SOON
    assert code == 1
    error = errors_of(printed)[0]
    assert "process 0 of 2 got no reply from another process" in error
    assert "none within runtime.timeout_minutes=0.2" in error
    assert_matches_reference(runs / "freezes", references[2])


def seen_by_one(words):
    """(image, step, questions) of an image that first occurs in the second process only."""
    config = compose(words)
    folder = DataFolder(config.data.root)
    examples = load_examples(folder, "train", prepare_words(folder))
    shapes = open_stores(folder.stores("train")).shapes(examples.image_ids)
    batches = TrainingBatches(shapes, config.optim.batch_size, config.seed)
    both = [batches.pieces(1, rank=rank, world_size=2) for rank in (0, 1)]
    seen = set()
    for step, pieces in enumerate(zip(*both, strict=True)):
        first, second = (set(examples.image_ids[piece.rows].tolist()) for piece in pieces)
        if step >= 3 and second - first - seen:
            questions = set(examples.question_ids[pieces[1].rows].tolist())
            return min(second - first - seen), step, questions
        seen |= first | second
    raise AssertionError("there is no such image")


def write_nan(path, image_id):
    """Overwrite one feature of an image without updating any checksum."""
    with FeatureStore(path) as store:
        place = store.image_ids.tolist().index(image_id)
        row = int(store.offsets[place]) * store.num_features
        begin = store.header.data_offset
    with open(path, "r+b") as file:
        file.seek(begin + 2 * row)
        file.write(np.float16(np.nan).tobytes())


def test_one_process_gets_a_nan(words, runs, small_dataset, tmp_path):
    image_id, step, questions = seen_by_one(words)
    root = tmp_path / "damaged"
    shutil.copytree(small_dataset, root)
    write_nan(DataFolder(root).store("train"), image_id)
    words = [*words, "name=damaged", AT_EVERY_STEP, f"data.root={root}"]
    code, printed = Run(train_command(words, 2)).end()
    assert code == 2, printed
    (error,) = errors_of(printed)
    found = re.search(r"step (\d+) is not finite \(questions: ([\d, ]+)\)", error)
    assert int(found[1]) == step
    assert {int(number) for number in found[2].split(", ")} == questions
    content = load_checkpoint(runs / "damaged" / "last.pt")
    assert content["progress"]["global_step"] == step
    assert all(weight.isfinite().all() for weight in content["model"].values())
