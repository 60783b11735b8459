"""One of two processes dies, gets a NaN or freezes: all end soon, and the error names the cause."""

import re

import pytest

from data.batching.examples import load_examples
from data.batching.sampler import TrainingSampler
from data.features.store_set import open_stores
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from mcan.checkpoint import load_checkpoint
from tests.faults import moments
from tests.faults.damaged_stores import write_nan
from tests.faults.runs import Run, assert_matches_reference, errors_of, launch_trapped
from tests.small_runs import AT_EVERY_STEP, compose, train_command

SOON = 400  # seconds: less than the default runtime.timeout_minutes, which it must not wait for


def end_without(words, runs, name, rank, action):
    """The errors of a run of two processes, one of which is lost at a step; it must end."""
    trap = {"place": moments.IN_STEP, "passage": 6, "rank": rank, "action": action}
    words = [*words, f"name={name}", AT_EVERY_STEP]
    code, printed = launch_trapped(words, runs / f"{name}.trace", 2, **trap).end(SOON)
    assert f"TRAP {action}" in printed
    assert code == 1, printed
    return errors_of(printed)


@pytest.mark.parametrize("rank", [0, 1])
def test_one_process_dies(words, references, runs, rank):
    errors = end_without(words, runs, f"dies_{rank}", rank, "kill")
    lost = f"error: process {1 - rank} of 2 got no reply from another process: it has ended"
    killed = f"error: process {rank} was killed by SIGKILL; resume=true continues"
    assert all(error.startswith((lost, killed)) for error in errors), errors
    assert errors[-1].startswith(killed)
    assert_matches_reference(runs / f"dies_{rank}", references[2])


def test_one_process_freezes(words, references, runs):
    """SIGSTOP: it keeps its connections but is silent; runtime.timeout_minutes is the limit."""
    limited = [*words, "runtime.timeout_minutes=0.3"]
    error = end_without(limited, runs, "freezes", 1, "freeze")[0]
    assert "process 0 of 2 got no reply from another process" in error
    assert "none within runtime.timeout_minutes=0.3" in error
    assert re.search(r"\(.*gloo.*imed out.*\)$", error)  # in its own words
    assert_matches_reference(runs / "freezes", references[2])


def seen_by_one(words):
    """(image, step, questions) of an image that first occurs in the second process only."""
    config = compose(words)
    folder = DataFolder(config.data.root)
    examples = load_examples(folder, "train", prepare_words(folder))
    shapes = open_stores(folder.stores("train")).shapes(examples.image_ids)
    batches = TrainingSampler(shapes, config.optim.batch_size, config.seed)
    both = [batches.micro_batches(1, rank=rank, world_size=2) for rank in (0, 1)]
    seen = set()
    for step, micro_batches in enumerate(zip(*both, strict=True)):
        first, second = (set(examples.image_ids[each.rows].tolist()) for each in micro_batches)
        if step >= 3 and second - first - seen:
            questions = set(examples.question_ids[micro_batches[1].rows].tolist())
            return min(second - first - seen), step, questions
        seen |= first | second
    raise AssertionError("there is no such image")


def test_one_process_gets_a_nan(words, runs, data):
    image_id, step, questions = seen_by_one(words)
    write_nan(data.store("train"), image_id)
    words = [*words, "name=damaged", AT_EVERY_STEP, f"data.root={data.root}"]
    code, printed = Run(train_command(words, 2)).end()
    assert code == 2, printed
    (error,) = errors_of(printed)
    found = re.search(r"step (\d+) is not finite \(questions: ([\d, ]+)\)", error)
    assert int(found[1]) == step
    assert {int(number) for number in found[2].split(", ")} == questions
    content = load_checkpoint(runs / "damaged" / "last.pt")
    assert content["progress"]["global_step"] == step
    assert all(weight.isfinite().all() for weight in content["model"].values())
