"""Learning rates against tables written by hand from the papers, and schedules over epochs."""

import pytest

from mcan.schedule import StepRate, parse_schedule
from scripts.model import build_rate
from tests.small_runs import compose

# Multimodal Continuous Visual Attention, Section 6.1: min(2.5t·1e-5, 5e-4), ×0.2 every 2 after 10
PAPER = [
    2.5e-5, 5e-5, 7.5e-5, 1e-4, 1.25e-4, 1.5e-4, 1.75e-4, 2e-4, 2.25e-4, 2.5e-4,
    5e-5, 5e-5, 1e-5, 1e-5, 2e-6,
]  # fmt: skip
# MCAN (Yu et al. 2019), Section 4.1, and its code's WARMUP_EPOCH = 3, LR_DECAY_LIST = [10, 12]
MCAN = [2.5e-5, 5e-5, 7.5e-5, *[1e-4] * 7, 2e-5, 2e-5, 4e-6]
RELEASE = [1.25e-5, 2.5e-5, 3.75e-5, *[5e-5] * 7, 1e-5, 1e-5, 2e-6]


@pytest.mark.parametrize(
    ("name", "table"), [("paper", PAPER), ("mcan", MCAN), ("release", RELEASE)]
)
def test_learning_rates_are_those_of_the_published_tables(name, table):
    optim = compose([f"optim={name}"]).optim
    rate = build_rate(optim.rate)
    assert optim.epochs == len(table)
    for epoch, expected in enumerate(table, 1):
        for step in (0, 10**6):  # the step within an epoch changes nothing
            assert rate.at(epoch, step, 10**7) == pytest.approx(expected, rel=1e-12)


def test_the_cap_holds_when_the_warm_up_is_long_enough_to_reach_it():
    rate = build_rate(compose(["optim=paper", "optim.rate.decay_after=30"]).optim.rate)
    assert rate.at(20, 0, 1) == pytest.approx(5e-4)
    assert rate.at(25, 0, 1) == pytest.approx(5e-4)


def test_step_rate_warms_up_stays_and_falls_to_nearly_nothing():
    rate = StepRate(peak=2.0, warmup_steps=4, decay_share=0.5)
    rates = [rate.at(1, step, 20) for step in range(20)]
    assert rates[:4] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert rates[4:11] == [2.0] * 7
    assert rates[11:] == pytest.approx([1.8, 1.6, 1.4, 1.2, 1.0, 0.8, 0.6, 0.4, 0.2])


def test_step_rate_without_warm_up_or_decay_is_constant():
    rate = StepRate(peak=2.0, warmup_steps=0, decay_share=0.0)
    assert [rate.at(1, step, 3) for step in range(3)] == [2.0] * 3


def test_a_rate_of_neither_kind_is_refused_by_its_keys():
    rate = compose(["optim=paper", "~optim.rate.cap"]).optim.rate
    with pytest.raises(ValueError, match=r"optim\.rate needs slope, cap.*it has slope, decay"):
        build_rate(rate)


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        (3, [3, 3, 3, 3, 3]),
        ({"constant": 0.5}, [0.5] * 5),
        ({"linear": [1, 9]}, [1, 3, 5, 7, 9]),
        ({"steps": {1: 2, 3: 4, 5: 8}}, [2, 2, 4, 4, 8]),
        ({"steps": {"4": 4.5, "1": 2}}, [2, 2, 2, 4.5, 4.5]),
    ],
)
def test_a_schedule_gives_its_value_in_every_epoch(setting, values):
    schedule = parse_schedule("attention.lam", setting, num_epochs=5)
    assert [schedule.at(epoch) for epoch in range(1, 6)] == values


def test_a_linear_schedule_of_one_epoch_is_at_its_end():
    assert parse_schedule("lam", {"linear": [1, 9]}, num_epochs=1).at(1) == 9


@pytest.mark.parametrize(
    "setting",
    [
        "2", None, True, {}, {"linear": [1]}, {"linear": 3}, {"linear": ["a", "b"]},
        {"steps": {}}, {"steps": {2: 1}}, {"steps": [1, 2]}, {"steps": {"one": 1}},
        {"constant": "x"}, {"constant": False}, {"cosine": [1, 2]},
        {"constant": 1, "steps": {1: 2}},
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_name_and_the_forms_there_are(setting):
    with pytest.raises(ValueError, match=r"attention\.lam must be a number, .*linear.*steps.*not "):
        parse_schedule("attention.lam", setting, num_epochs=5)
