"""kill -9 at chosen and random moments: resumed runs are bit-identical to uninterrupted ones."""

import random
import re
import signal
import time

import pytest

from tests.faults import moments
from tests.faults.runs import (
    assert_is_over,
    assert_matches_reference,
    launch_trapped,
    read_trace,
    wait_for,
)
from tests.small_runs import AT_EVERY_STEP, assert_ends_like, kill

# place, and how often it is reached after the start; each run resumes the one killed before
MOMENTS = [
    (moments.IN_STEP, 5),
    (moments.IN_WRITING, 4),
    (moments.BEFORE_RENAME, 3),
    (moments.BETWEEN_NAMES, 4),
    (moments.IN_VALIDATION, 2),
    (moments.AFTER_METRICS, 2),  # it is first reached when the metrics are restored
    (moments.AT_EPOCH_END, 1),
    (moments.IN_STEP, 1),
]
OF_ANY_RANK = (moments.IN_STEP, moments.IN_VALIDATION)  # only rank 0 reaches the others


@pytest.mark.parametrize("num_processes", [1, 2])
def test_killed_at_a_chosen_moment(words, references, runs, kill_log, num_processes):
    folder, trace = runs / f"chosen_{num_processes}", runs / f"chosen_{num_processes}.trace"
    reference = references[num_processes]
    again = [*words, f"name={folder.name}", AT_EVERY_STEP, "resume=true"]
    folder.mkdir()
    for place, passage in MOMENTS:
        rank = num_processes - 1 if place in OF_ANY_RANK else 0
        process = launch_trapped(
            again, trace, num_processes, place=place, passage=passage, rank=rank, action="kill"
        )
        code, printed = process.end()
        (reported,) = re.findall(r"TRAP kill: (.*)", printed) or [printed]
        assert place in reported
        assert code == (-signal.SIGKILL if num_processes == 1 else 1), printed
        resumes_from = assert_matches_reference(folder, reference)
        kill_log(num_processes, reported, resumes_from)
    code, printed = launch_trapped(again, trace, num_processes).end()
    assert code == 0, printed
    assert_ends_like(folder, reference)


@pytest.mark.parametrize(("num_processes", "num_kills"), [(1, 8), (2, 4)])
def test_killed_at_a_random_moment(words, references, runs, kill_log, num_processes, num_kills):
    """All processes at once; a checkpoint is written about every tenth of a second."""
    chance = random.Random(num_processes)
    reference, number = references[num_processes], 0
    while num_kills:
        folder = runs / f"random_{num_processes}_{number}"
        folder.mkdir(exist_ok=True)
        trace = folder.with_suffix(".trace")
        often = "runtime.checkpoint_every_minutes=0.002"
        again = [*words, f"name={folder.name}", often, "resume=true"]
        process = launch_trapped(again, trace, num_processes)
        wait_for(trace, "step", process)
        time.sleep(chance.uniform(0, 0.6))
        if process.poll() is not None:  # it ended before
            code, printed = process.end()
            assert code == 0, printed
            assert_ends_like(folder, reference)
            number += 1
            continue
        kill(process)
        assert_is_over(process.run)
        saved = any(folder.glob("step_*.pt"))
        resumes_from = assert_matches_reference(folder, reference) if saved else 0
        kill_log(num_processes, read_trace(trace), resumes_from)
        num_kills -= 1
    code, printed = launch_trapped(again, trace, num_processes).end()
    assert code == 0, printed
    assert_ends_like(folder, reference)
