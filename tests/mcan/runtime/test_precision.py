"""The dtype of a step, asked of the GPU that it runs on."""

import pytest
import torch

from mcan.cost.step_cost import META
from mcan.runtime.precision import choose_dtype
from scripts.doctor.gpus import check_gpus, inspect_machine
from tests.mcan.runtime.stand_in_gpus import stand_in


@pytest.fixture
def _two_kinds(monkeypatch):
    stand_in(monkeypatch, ["T4", "A100"], [7, 8])


@pytest.mark.usefixtures("_two_kinds")
def test_a_gpu_that_only_emulates_bfloat16_gets_float16():
    devices = [torch.device("cuda", number) for number in (0, 1)]
    assert [choose_dtype("auto", each) for each in devices] == [torch.float16, torch.bfloat16]
    assert [choose_dtype("bfloat16", each) for each in devices] == [torch.bfloat16] * 2


@pytest.mark.usefixtures("_two_kinds")
def test_the_doctor_says_what_training_would_choose():
    found = [finding.text for finding in check_gpus(inspect_machine(), 2, None)]
    assert found[0].endswith("no bfloat16: runtime.precision=auto is float16 with a loss scale")
    assert found[1].endswith("16 GB, bfloat16")


def test_a_gpu_that_is_only_counted_for_has_bfloat16():
    chosen = [choose_dtype(name, META) for name in ("auto", "float32", "float16")]
    assert chosen == [torch.bfloat16, torch.float32, torch.float16]
