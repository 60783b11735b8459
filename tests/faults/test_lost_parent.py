"""kill -9 of what started a run: the run saves a checkpoint and ends, and can be resumed."""

import json
import signal

import pytest

from mcan.checkpoint import load_checkpoint
from tests.faults import moments
from tests.faults.runs import (
    TRAPPED,
    Run,
    assert_matches_reference,
    hold_in_step,
    launch_trapped,
    wait_for,
)
from tests.small_runs import SMALL, assert_ends_like, train_command

HELD = 6  # the step that waits for the request
SOON_AFTER = range(HELD, HELD + 3)  # processes agree one step later
HOLD = {"place": moments.IN_STEP, "passage": HELD, "action": "hold"}


def lose(process):
    """Kill what started the run; the run must end too."""
    process.kill()
    code, _ = process.end()
    assert code == -signal.SIGKILL


def test_the_launcher_is_killed(words, references, runs):
    again, trace = [*words, "name=launched"], runs / "launched.trace"
    lose(hold_in_step(again, trace, HELD, num_processes=2))
    assert assert_matches_reference(runs / "launched", references[2]) in SOON_AFTER
    code, printed = launch_trapped([*again, "resume=true"], trace, 2).end()
    assert code == 0, printed
    assert_ends_like(runs / "launched", references[2])


def start_held(words, module, trace):
    """A command that trains up to a step and waits there."""
    command = train_command(words, module=module)
    process = Run(command, TRAP=json.dumps(HOLD), TRACE=str(trace))
    wait_for(trace, "hold", process)
    return process


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_sweep_is_killed(words, references, runs, parallel):
    name = f"swept_{parallel}"
    trace, folder = runs / f"{name}.trace", runs / name / "run"
    own = [f"sweep.name={name}", f"sweep.parallel={parallel}", "attention.lam=0,1"]
    again = [*words, *own, TRAPPED]
    lose(start_held(again, "scripts.sweep", trace))
    assert assert_matches_reference(folder, references[1]) in SOON_AFTER
    record = json.loads((runs / name / "jobs" / "run.json").read_text())
    assert record["state"] == "interrupted"
    command = train_command(again, module="scripts.sweep")
    code, printed = Run(command, TRACE=str(trace)).end()
    assert code == 0, printed
    assert_ends_like(folder, references[1])


def test_the_paper_is_killed(small_dataset, runs):
    train = [*(word for word in SMALL if not word.startswith("data")), TRAPPED]
    words = [
        "dataset=custom", f"data.root={small_dataset}", "seeds=[1]", "heads=[discrete]",
        f"runs={runs / 'paper'}", f"train={' '.join(train)}",
    ]  # fmt: skip
    lose(start_held(words, "scripts.paper", runs / "paper.trace"))
    content = load_checkpoint(runs / "paper" / "discrete-seed1" / "last.pt")
    assert content["progress"]["global_step"] in SOON_AFTER
