"""Words of a command line: read as settings, or rejected with one sentence."""

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

from scripts import ask, evaluate, train
from scripts.cli.command import Command, read_words
from tests.faults.fuzzing import Case, Fixture, Fuzzer

COMMANDS = (train.main, evaluate.main, ask.main)
KEYS = [
    "optim.epochs", "optim.rate", "attention", "attention.lam", "attention.k_max", "model", "name",
    "data.root", "runtime", "runtime.device", "checkpoint", "image", "question", "seed", "tracker",
    "init_from", "experiment", "optim", "hydra.run.dir", "no.such.key", "é", "", "output",
]  # fmt: skip
PIECES = [
    "1", "-1", "0.5", "1e999", "nan", "null", "true", "x", "a b", "é東", "/tmp/x", "2024", "0x1f",
    "[", "]", "{", "}", "(", ")", ",", ":", "=", "'", '"', "\\", "\n", "\t", "\0", "\udcff", "~",
    "${", "${seed}", "${oc.env:NONE}", "${now:%Y}", "range(1,3)", "choice(a,b)", "glob(*)", "sort(",
    "discrete", "multimodal", "small", "cosine", "name:", "@", "+", "?", "???", "#", "%",
    "9" * 5000,
]  # fmt: skip
FLAGS = ["--multirun", "--cfg=job", "--info", "--config-name=", "--config-dir=", "-c", "--no", "-"]


def draw_word(chance: random.Random) -> str:
    """`key=value` of pieces that mean something to Hydra's grammar, or a flag."""
    if chance.random() < 0.05:
        return chance.choice(FLAGS) + chance.choice(["", "x", "="])
    key = chance.choice(["", "", "", "+", "++", "~"]) + chance.choice(KEYS)
    value = "".join(chance.choices(PIECES, k=chance.randint(0, 4)))
    return key + chance.choice(["=", "=", "=", "=", ""]) + value


def draw_words(chance: random.Random) -> tuple[Command, list[str]]:
    words = [draw_word(chance) for _ in range(chance.randint(1, 3))]
    return chance.choice(COMMANDS), words


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """What is rejected is rejected with some words."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        assert message.strip(), "the error says nothing"


def prepare_parsing(*_: Path | Fixture) -> Case:
    """The grammar alone, which is quick."""

    def parse(chance: random.Random) -> None:
        command, words = draw_words(chance)
        with one_sentence():
            command.parse(words)

    return parse


def prepare_composing(*_: Path | Fixture) -> Case:
    """Up to the checked settings of all jobs, as before a command starts."""

    def compose(chance: random.Random) -> None:
        command, words = draw_words(chance)
        with one_sentence():
            command.compose(read_words(words, command.literal))

    return compose


FUZZERS = [
    Fuzzer("words of a command line", prepare_parsing, 400),
    Fuzzer("settings of a command line", prepare_composing, 40),
]
