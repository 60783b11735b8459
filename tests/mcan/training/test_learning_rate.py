"""Learning rates against tables written by hand from the papers, and by name."""

import math

import pytest

from mcan.training.learning_rate import build_rate
from tests.small_runs import compose

# Multimodal Continuous Visual Attention, Section 6.1: min(2.5t·1e-5, 5e-4), ×0.2 every 2 after 10
PAPER = [
    2.5e-5, 5e-5, 7.5e-5, 1e-4, 1.25e-4, 1.5e-4, 1.75e-4, 2e-4, 2.25e-4, 2.5e-4,
    5e-5, 5e-5, 1e-5, 1e-5, 2e-6,
]  # fmt: skip
# MCAN (Yu et al. 2019), Section 4.1, and its code's WARMUP_EPOCH = 3, LR_DECAY_LIST = [10, 12]
MCAN = [2.5e-5, 5e-5, 7.5e-5, *[1e-4] * 7, 2e-5, 2e-5, 4e-6]
# the published training command: 15 epochs, base rate 5e-5, MCAN's warm-up and its two decays
RELEASE = [1.25e-5, 2.5e-5, 3.75e-5, *[5e-5] * 7, 1e-5, 1e-5, *[2e-6] * 3]


def over_steps(options, num_steps):
    rate = build_rate(options)
    return [rate.at(1, step, num_steps) for step in range(num_steps)]


def configured(name):
    return dict(compose([f"optim={name}"]).optim.rate)


@pytest.mark.parametrize(
    ("options", "table"),
    [
        (configured("paper"), PAPER),
        (configured("mcan"), MCAN),
        (configured("release"), RELEASE),
        ({k: v for k, v in configured("paper").items() if k != "name"}, PAPER),
        ({"name": "mcan", "peak": 1e-4}, MCAN),
        ({"name": "mcan", "peak": 5e-5, "decay_epochs": [10, 12]}, RELEASE),
    ],
)
def test_learning_rates_are_those_of_the_published_tables(options, table):
    rate = build_rate(options)
    for epoch, expected in enumerate(table, 1):
        for step in (0, 10**6):  # the step within an epoch changes nothing
            assert rate.at(epoch, step, 10**7) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "table", "batch_size"),
    [("paper", PAPER, 64), ("mcan", MCAN, 64), ("release", RELEASE, 16)],
)
def test_presets_train_as_many_epochs_as_published_in_batches_of_the_published_size(
    name, table, batch_size
):
    optim = compose([f"optim={name}"]).optim
    assert (optim.epochs, optim.batch_size) == (len(table), batch_size)


def test_more_epochs_of_mcan_do_not_decay_further():
    rate = build_rate(configured("mcan"))
    assert rate.at(20, 0, 1) == rate.at(13, 0, 1) == pytest.approx(4e-6)


def test_the_cap_holds_when_the_warm_up_is_long_enough_to_reach_it():
    rate = build_rate({**configured("paper"), "decay_after": 30})
    assert rate.at(20, 0, 1) == rate.at(25, 0, 1) == pytest.approx(5e-4)


@pytest.mark.parametrize("name", [{}, {"name": "warmup_linear"}])
def test_a_linear_rate_warms_up_stays_and_falls_to_nearly_nothing(name):
    rates = over_steps({**name, "peak": 2.0, "warmup_steps": 4, "decay_share": 0.5}, 20)
    assert rates[:4] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert rates[4:11] == [2.0] * 7
    assert rates[11:] == pytest.approx([1.8, 1.6, 1.4, 1.2, 1.0, 0.8, 0.6, 0.4, 0.2])
    assert over_steps({"peak": 2.0, "warmup_steps": 0, "decay_share": 0.0}, 3) == [2.0] * 3


@pytest.mark.parametrize(("steps", "share", "longest"), [(0, 0.2, 4), (4, 0.1, 4), (5, 0.2, 5)])
def test_a_warm_up_may_be_a_share_of_the_run(steps, share, longest):
    options = {"peak": 2.0, "warmup_steps": steps, "warmup_share": share, "decay_share": 0.0}
    rates = over_steps(options, 20)
    assert rates == pytest.approx([2.0 * min(1, n / longest) for n in range(1, 21)])


def test_a_cosine_rate_warms_up_and_falls_by_half_a_cosine():
    rates = over_steps({"name": "warmup_cosine", "peak": 2.0, "warmup_steps": 4, "final": 1.0}, 20)
    assert rates[:5] == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0])
    assert rates[12] == pytest.approx(1.5)  # half-way down
    assert rates[8] == pytest.approx(1 + (1 + math.sqrt(0.5)) / 2)
    assert rates[5:] == sorted(rates[5:], reverse=True)


def test_a_constant_rate_is_constant():
    assert over_steps({"name": "constant", "value": 1e-4}, 3) == [1e-4] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "cosine"}, "there is no learning-rate schedule 'cosine'; there are constant, mc"),
        ({"slope": 1, "decay": 1}, "'paper' needs slope, cap, decay, .*; it has slope, decay"),
        ({"name": "constant"}, "'constant' needs value; it has none"),
        (
            {"name": "warmup_cosine", "peak": 1, "warmup_steps": 1, "decay_share": 1},
            "'warmup_cosine' needs peak, warmup_steps and may have final; it has peak, warmup_s",
        ),
        ({"name": "constant", "value": "fast"}, r"optim\.rate\.value must be a number of at least"),
        ({"name": "constant", "value": -1}, "at least 0, not -1"),
        ({"name": "constant", "value": math.nan}, "at least 0, not nan"),
        ({"name": "mcan", "peak": 1, "warmup_epochs": 1.5}, "must be a whole number .* not 1.5"),
        ({**configured("paper"), "decay_every": 0}, "decay_every must be at least 1, not 0"),
        ({"name": "mcan", "peak": 1, "decay_epochs": 3}, "must be a list of epochs such"),
    ],
)
def test_a_rate_that_does_not_fit_says_what_would(options, message):
    with pytest.raises(ValueError, match=message):
        build_rate(options)
