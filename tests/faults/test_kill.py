"""kill -9 at chosen and random moments: resumed runs are bit-identical to uninterrupted ones."""

import re
import shutil
import signal
import time

import pytest

from tests.faults import moments
from tests.faults.kills import DELAYS, OF_ANY_RANK, draw_trap, list_chains
from tests.faults.length import read_length
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
        kill_log(f"{num_processes} × multimodal: {reported}; resumes from step {resumes_from}")
    code, printed = launch_trapped(again, trace, num_processes).end()
    assert code == 0, printed
    assert_ends_like(folder, reference)


def pytest_generate_tests(metafunc):
    if "chain" in metafunc.fixturenames:
        metafunc.parametrize("chain", list_chains(read_length(metafunc.config)), ids=str)


def test_killed_at_a_random_moment(chain, length, words_of, references, runs, kill_log):
    """By itself at some place, or all processes at once; a checkpoint is written very often."""
    chance, reference = chain.generator(length.seed), references[chain.num_processes, chain.head]
    words = [*words_of(chain.head), "runtime.checkpoint_every_minutes=0.002", "resume=true"]
    kills, finished = [], 0
    with (
        length.keep(chain, {"kills": kills}),
        length.naming("kills", chain) as name_chain,
    ):
        name_chain(chain.number)
        while len(kills) < chain.num_kills:
            folder = runs / f"random_{chain.number}_{finished}"
            folder.mkdir(exist_ok=True)
            moment = run_and_kill([*words, f"name={folder.name}"], folder, chain, chance)
            if moment is None:  # it ended before
                assert_ends_like(folder, reference)
                finished += 1
                continue
            saved = any(folder.glob("step_*.pt"))
            resumes_from = assert_matches_reference(folder, reference) if saved else 0
            run = f"{chain.num_processes} × {chain.head}"
            kills.append(kill_log(f"{run}: {moment}; resumes from step {resumes_from}"))
        trace = folder.with_suffix(".trace")
        code, printed = launch_trapped(
            [*words, f"name={folder.name}"], trace, chain.num_processes
        ).end()
        assert code == 0, printed
        assert_ends_like(folder, reference)
    for each in runs.glob(f"random_{chain.number}_*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def run_and_kill(words, folder, chain, chance):
    """Resume a run and kill it; where it was killed, or None if it came to its end."""
    trap, delay = draw_trap(chance, chain.num_processes), chance.choice(DELAYS)
    trace = folder.with_suffix(".trace")
    process = launch_trapped(words, trace, chain.num_processes, **trap)
    if not trap:
        wait_for(trace, "step", process)
        time.sleep(chance.uniform(0, delay))
    if trap or process.poll() is not None:
        code, printed = process.end()
        places = re.findall(r"TRAP kill: (.*)", printed)
        killed = -signal.SIGKILL if chain.num_processes == 1 else 1
        assert code == (killed if places else 0), printed
        return places[0] if places else None
    kill(process)
    assert_is_over(process.run)
    return f"from outside, {read_trace(trace)}"
