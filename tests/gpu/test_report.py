"""The report of `make test-gpu`, with made-up results."""

import subprocess
import sys
from types import SimpleNamespace

import torch

from scripts.doctor.gpus import Machine
from tests.gpu.report import RULE, list_versions, read_figures, read_outcomes, write_page
from tests.small_runs import ROOT

A100 = SimpleNamespace(name="NVIDIA A100", total_memory=85e9, major=8, minor=0)
MACHINE = Machine(
    (A100, A100), (torch.bfloat16,) * 2, "NVRM version: 580.1", "12.8", ("sm_80",), "2.27.3"
)
STEP = "tests/gpu/test_step.py::test_a_step_does_not_synchronise"


def made_up(nodeid, outcome, longrepr=None, **properties):
    return SimpleNamespace(
        nodeid=nodeid, outcome=outcome, longrepr=longrepr, user_properties=[*properties.items()]
    )


def crash(message):
    return SimpleNamespace(reprcrash=SimpleNamespace(message=message))


STATS = {
    "passed": [
        made_up(f"{STEP}[cuda-discrete]", "passed"),
        made_up("tests/gpu/test_speed.py::test_a_step_is_timed[cuda]", "passed", figure="50 ms"),
    ],
    "failed": [
        made_up(f"{STEP}[cuda-unimodal]", "failed", crash("RuntimeError: synchronises\nat …")),
    ],
    "error": [made_up("tests/gpu/test_memory.py::test_memory[cuda]", "failed", "no fixture\nhere")],
    "skipped": [
        made_up("tests/gpu/test_processes.py::test_two[cuda]", "skipped", ("f", 1, "Skipped: one")),
    ],
}


def test_the_report_names_machine_properties_reasons_and_figures():
    page = write_page(MACHINE, ["torch 2.13.0"], read_outcomes(STATS), read_figures(STATS))
    assert list(page) == [
        RULE,
        "GPU: NVIDIA A100, 85 GB, sm_80",
        "GPU: NVIDIA A100, 85 GB, sm_80",
        "driver: NVRM version: 580.1",
        "CUDA 12.8, NCCL 2.27.3, torch 2.13.0",
        "",
        "FAILED   a step does not synchronise (1 failed, 1 passed)",
        "           cuda-unimodal: RuntimeError: synchronises",
        "FAILED   memory (1 failed)",
        "           cuda: no fixture",
        "passed   a step is timed (1 passed)",
        "skipped  two (1 skipped)",
        "           one",
        "",
        "50 ms",
        "-" * len(RULE),
    ]


def test_without_a_gpu_the_report_says_so():
    page = list(write_page(Machine((), (), "", "", (), ""), list_versions(), [], []))
    assert {"GPU: none", "driver: none", "no step was timed"} <= set(page)
    assert f"Python {sys.version.split()[0]}" in page[3]
    assert "torch 2." in page[3]


def test_make_test_gpu_ends_with_the_report():
    words = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", "tests/gpu/test_processes.py"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert RULE in done.stdout
    assert " two processes take the same steps as one (1 " in done.stdout
