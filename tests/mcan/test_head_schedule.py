"""Options of heads over epochs, and user-defined schedules and heads."""

from typing import ClassVar

import pytest

import attention
from attention.heads import registry
from mcan.head_schedule import SCHEDULES, ScheduledHead, parse_schedule, register_schedule


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
        {"steps": {1: 1, 1.5: 2}}, {"steps": {True: 1}},
        {"constant": "x"}, {"constant": False}, {"cosine": [1, 2]},
        {"constant": 1, "steps": {1: 2}},
    ],
)  # fmt: skip
def test_anything_else_is_rejected_with_its_name_and_the_forms_there_are(setting):
    with pytest.raises(ValueError, match=r"attention\.lam must be a number, .*linear.*steps.*not "):
        parse_schedule("attention.lam", setting, num_epochs=5)


def test_a_fraction_is_rejected_for_a_whole_number_and_rounded_only_on_a_line():
    for fraction in (2.5, {"constant": 2.5}):
        with pytest.raises(ValueError, match=r"train_iterations must be a whole number .*not 2\.5"):
            ScheduledHead({"name": "multimodal", "train_iterations": fraction}, 5).check()
    line = ScheduledHead({"name": "multimodal", "train_iterations": {"linear": [1, 4]}}, 5)
    line.check()
    assert [line.values_at(epoch)["train_iterations"] for epoch in range(1, 6)] == [1, 2, 2, 3, 4]


def test_an_option_that_the_head_does_not_name_cannot_follow_a_schedule():
    with pytest.raises(
        ValueError, match=r"attention\.k_max cannot follow .*'multimodal' these can: lam, train_it"
    ):
        ScheduledHead({"name": "multimodal", "k_max": {"linear": [1, 4]}}, num_epochs=5)


@pytest.fixture
def _registered(monkeypatch):
    """A user's head and a user's schedule, which other tests do not see."""
    monkeypatch.setattr(registry, "_heads", dict(registry._heads))
    monkeypatch.setattr(SCHEDULES, "values", dict(SCHEDULES.values))

    @attention.register("hot")
    class Hot(attention.DiscreteHead):
        schedulable: ClassVar = {"temperature": float, "rounds": int}

        def __init__(self, temperature: float, rounds: int, plain: int = 0) -> None:
            super().__init__()
            self.temperature, self.rounds, self.plain = temperature, rounds, plain

    @register_schedule("halving")
    class Halving:
        """{halving: x}: half as much in every epoch."""

        def __init__(self, setting, num_epochs):
            self.first = float(setting)

        def at(self, epoch):
            return self.first / 2 ** (epoch - 1)


@pytest.mark.usefixtures("_registered")
def test_a_users_head_schedules_its_own_options_by_a_users_schedule():
    options = {"name": "hot", "temperature": {"halving": 8}, "rounds": {"halving": 5}, "plain": 7}
    scheduled = ScheduledHead(options, num_epochs=3)
    values = [scheduled.values_at(epoch) for epoch in (1, 2, 3)]
    assert [value["temperature"] for value in values] == [8, 4, 2]
    assert [value["rounds"] for value in values] == [5, 2, 1]  # whole: its declared type
    head = scheduled.build(epoch=2)
    assert (head.temperature, head.rounds, head.plain) == (4, 2, 7)
    with pytest.raises(ValueError, match=r"must be a number, .*steps.* or \{halving: …\}, not"):
        ScheduledHead({**options, "rounds": "many"}, num_epochs=3)
    with pytest.raises(ValueError, match="a head schedule named 'halving' is already registered"):
        register_schedule("halving")(dict)


def test_options_that_are_not_given_have_the_defaults_of_the_heads_class():
    given = {"name": "multimodal", "lam": {"linear": [1, 2]}}
    options = ScheduledHead(given, 3).options
    assert options["lam"] == {"linear": [1, 2]}
    assert (options["k_max"], options["floor"], options["selection"]) == (4, 1e-6, "sample")


def test_a_head_derived_from_ours_may_schedule_options_of_its_own():
    class Tempered(attention.MultimodalHead):
        schedulable: ClassVar = {**attention.MultimodalHead.schedulable, "temperature": float}

    head = Tempered()
    head.temperature = 0.5
    assert head.temperature == 0.5
    with pytest.raises(ValueError, match="train_iterations must be a whole number"):
        head.train_iterations = 0.5
