"""All that is fuzzed, and the parts that its cases are divided into."""

import random
from dataclasses import dataclass
from pathlib import Path

from tests.faults import (
    binary_formats,
    checkpoint_cases,
    command_line_cases,
    damaged_stores,
    demo_cases,
    text_formats,
)
from tests.faults.fuzzing import Case, Fixture, Fuzzer
from tests.faults.json_contents import draw_json
from tests.faults.length import Length

PART = 500  # cases of one test


def prepare_any_json(folder: Path, _: Fixture) -> Case:
    """The same JSON for any reader of text."""
    paths = [(kind, folder / kind.name / kind.file) for kind in text_formats.FORMATS]
    for _, path in paths:
        path.parent.mkdir()

    def write_and_read(chance: random.Random) -> None:
        kind, path = chance.choice(paths)
        path.write_bytes(draw_json(chance))
        kind.read_or_reject(path)

    return write_and_read


FUZZERS = [
    *(Fuzzer(each.name, each.prepare) for each in text_formats.FORMATS),
    *(Fuzzer(each.name, each.prepare) for each in binary_formats.FORMATS),
    *checkpoint_cases.FUZZERS,
    *damaged_stores.FUZZERS,
    *command_line_cases.FUZZERS,
    *demo_cases.FUZZERS,
    Fuzzer("any JSON to any reader", prepare_any_json, 1800),
]


@dataclass(frozen=True)
class Part:
    """Consecutive cases of one reader."""

    fuzzer: Fuzzer
    numbers: range

    def __str__(self) -> str:
        return f"{self.fuzzer.name} {self.numbers.start}-{self.numbers.stop}"


def list_parts(length: Length) -> list[Part]:
    """The cases to try: as many as asked for, in CI's proportions, or one alone."""
    if length.repeat is not None:
        name, _, number = length.repeat.rpartition(":")
        chosen = [fuzzer for fuzzer in FUZZERS if fuzzer.name == name]
        return [Part(fuzzer, range(int(number), int(number) + 1)) for fuzzer in chosen]
    total = sum(fuzzer.num_cases for fuzzer in FUZZERS)
    share = 1.0 if length.cases is None else length.cases / total
    counts = [(fuzzer, round(share * fuzzer.num_cases)) for fuzzer in FUZZERS]
    return [
        Part(fuzzer, range(first, min(first + PART, count)))
        for fuzzer, count in counts
        for first in range(0, count, PART)
    ]
