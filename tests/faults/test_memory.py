"""A process runs out of memory: one sentence says what to set, and all processes end."""

import json
import re
import sys

import pytest

from tests.faults import moments
from tests.faults.runs import (
    TRAPPED,
    Run,
    assert_matches_reference,
    errors_of,
    launch_trapped,
)
from tests.small_models import QUIET
from tests.small_runs import AT_EVERY_STEP, assert_ends_like, train_command

CRASHED = 1
SHORTAGE = r"error: (\d+) questions at a time do not fit into memory: set runtime\.(\w+)=(\d+) "
REASON = r"\(CUDA out of memory\. Tried to allocate 2\.00 GiB\)"

ANSWERING = json.dumps({"place": moments.IN_ANSWERING, "passage": 1, "action": "out of memory"})
# commands that train nothing have no modules=[…]
STARVED = """
import importlib, sys
import tests.faults.trap
name = sys.argv.pop(1)
importlib.import_module(name).main()
"""


def run_out(process):
    """How many questions did not fit, and the setting that the one sentence names."""
    code, printed = process.end()
    assert code == CRASHED, printed
    (error,) = errors_of(printed)
    found = re.match(SHORTAGE + REASON, error)
    assert found, error
    return error, int(found[1]), found[2], int(found[3])


@pytest.mark.parametrize(
    ("num_processes", "rank", "place"),
    [
        (1, 0, moments.IN_STEP),
        (1, 0, moments.IN_ANSWERING),
        (2, 1, moments.IN_STEP),
        (2, 0, moments.IN_ANSWERING),
    ],
)
def test_out_of_memory_in_training(words, references, runs, num_processes, rank, place):
    name = f"memory_{num_processes}_{place.replace(' ', '_')}"
    again, trace = [*words, f"name={name}", AT_EVERY_STEP], runs / f"{name}.trace"
    trap = {"place": place, "passage": 2, "rank": rank, "action": "out of memory"}
    process = launch_trapped(again, trace, num_processes, **trap)
    error, count, setting, value = run_out(process)
    assert error.endswith("; resume=true continues from the last checkpoint")
    if place == moments.IN_STEP:
        assert (count, setting, value) == (6 // num_processes, "micro_batches", 2)
    else:
        assert (setting, value) == ("evaluation_batch_size", count // 2)
    assert_matches_reference(runs / name, references[num_processes])
    code, printed = launch_trapped([*again, "resume=true"], trace, num_processes).end()
    assert code == 0, printed
    assert_ends_like(runs / name, references[num_processes])


@pytest.mark.parametrize("num_processes", [1, 2])
def test_out_of_memory_in_evaluation(multimodal_run, runs, num_processes):
    output, rank = runs / f"evaluated_{num_processes}", num_processes - 1
    trap = {"place": moments.IN_ANSWERING, "passage": 1, "rank": rank, "action": "out of memory"}
    words = [f"checkpoint={multimodal_run}", f"output={output}", TRAPPED, *QUIET]
    command = train_command(words, num_processes, "scripts.evaluate")
    process = Run(command, TRAP=json.dumps(trap), TRACE=str(runs / "evaluated.trace"))
    error, count, setting, value = run_out(process)
    assert error.endswith(")")
    assert (setting, value) == ("evaluation_batch_size", count // 2)
    assert not output.exists()


@pytest.mark.parametrize(
    "name", ["ask", "figures", "gallery", "human_attention", "attention_arrays"]
)
def test_out_of_memory_in_a_command_of_one_process(multimodal_run, small_dataset, runs, name):
    picture = min((small_dataset / "images" / "val2014").iterdir())
    output = runs / f"{name}_output{'.png' if name == 'ask' else ''}"
    words = [f"output={output}", *QUIET]
    words += [f"image={picture}", "question=what"] if name == "ask" else []
    if name in ("ask", "attention_arrays"):
        words.append(f"checkpoint={multimodal_run}")
    else:
        words.append(f"checkpoints=[{multimodal_run}]")
    starts = ["-c", STARVED, f"scripts.{name}", *words]
    code, printed = Run([sys.executable, *starts], TRAP=ANSWERING, TRACE=str(runs / "trace")).end()
    assert code == CRASHED, printed
    (error,) = errors_of(printed)
    assert re.search("(device's memory is full|fit into memory): (use|set) ", error)
    assert re.search(REASON, error)
    assert not output.exists()
