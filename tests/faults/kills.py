"""Kills of training runs, several in a row: which runs, and when each is killed."""

import random
from dataclasses import dataclass
from typing import Any

from tests.faults import moments
from tests.faults.fuzzing import draw_case
from tests.faults.length import Length

HEADS = ("multimodal", "discrete", "unimodal")
PER_CHAIN = 10
# place, and how often it may be reached before the kill
PLACES = [
    (moments.RESUMING, 1),
    (moments.IN_STEP, 30),
    (moments.IN_WRITING, 10),
    (moments.BEFORE_RENAME, 10),
    (moments.BETWEEN_NAMES, 10),
    (moments.IN_VALIDATION, 4),
    (moments.AFTER_METRICS, 3),
    (moments.AT_EPOCH_END, 2),
]
OF_ANY_RANK = (moments.IN_STEP, moments.IN_VALIDATION)  # only rank 0 reaches the others
# seconds after the first place that a run reaches, which is where it resumes: while it resumes,
# within a second of it, which makes a pair with the kill before, or anywhere
DELAYS = (0.03, 0.6, 1.0)


@dataclass(frozen=True)
class Chain:
    """A run that is killed and resumed again and again."""

    number: int
    num_processes: int
    head: str
    num_kills: int

    def __str__(self) -> str:
        return f"kills {self.number} ({self.num_processes}, {self.head}, {self.num_kills})"

    def generator(self, seed: int) -> random.Random:
        """Draws when the runs of this chain are killed."""
        return draw_case(seed, "kills", self.number)


def list_chains(length: Length) -> list[Chain]:
    """CI's two chains, or as many as asked for: of one and two processes, of every head in turn."""
    if length.repeat is not None:
        name, _, number = length.repeat.rpartition(":")
        return [make_chain(int(number), PER_CHAIN)] if name == "kills" else []
    if length.kills is None:
        return [Chain(0, 1, HEADS[0], 8), Chain(1, 2, HEADS[0], 4)]
    firsts = range(0, length.kills, PER_CHAIN)
    return [make_chain(n, min(PER_CHAIN, length.kills - first)) for n, first in enumerate(firsts)]


def make_chain(number: int, num_kills: int) -> Chain:
    """The chain of a number."""
    return Chain(number, 1 + number % 2, HEADS[number // 2 % len(HEADS)], num_kills)


def draw_trap(chance: random.Random, num_processes: int) -> dict[str, Any]:
    """A place at which a process kills itself; nothing for a kill from outside."""
    if chance.random() < 0.5:
        return {}
    place, most = chance.choice(PLACES)
    rank = chance.randrange(num_processes) if place in OF_ANY_RANK else 0
    passage = chance.randint(1, most)
    return {"place": place, "passage": passage, "rank": rank, "action": "kill"}
