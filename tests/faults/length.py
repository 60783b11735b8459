"""How many cases and kills are tried and with which seed; what is done is kept under runs/faults/.

Without options CI's own sizes and seed apply, and nothing is kept.
"""

import glob
import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.small_runs import ROOT

SEED = 0  # in CI
CASE = ".case"  # suffix of the file that names the case which is being tried
# option: what it counts
OPTIONS = {
    "cases": "damaged or arbitrary inputs to all readers together",
    "kills": "kills of training runs, and a few of commands that make files",
    "questions": "questions asked of one demo server",
}
# argument of the tests whose number an option sets
ARGUMENTS = {"part": "cases", "chain": "kills", "making": "kills", "num_questions": "questions"}


@dataclass(frozen=True)
class Length:
    """The options of a run of the tests; None is CI's own size."""

    cases: int | None = None
    kills: int | None = None
    questions: int | None = None
    seed: int = SEED
    repeat: str | None = None  # name:number of one case or chain of kills

    @property
    def folder(self) -> Path:
        """Where the records of this seed are."""
        return ROOT / "runs" / "faults" / f"seed-{self.seed}"

    @property
    def is_kept(self) -> bool:
        """Whether parts that are done are recorded, and left out of the next run."""
        return self.repeat is None and any(getattr(self, option) for option in OPTIONS)

    def selects(self, arguments: list[str]) -> bool:
        """Whether to run a test with these arguments: with an option, only what it is about."""
        chosen = [name for name in OPTIONS if getattr(self, name) is not None]
        if self.repeat is not None:
            chosen = ["kills" if self.repeat.startswith("kills:") else "cases"]
        return not chosen or any(ARGUMENTS.get(name) in chosen for name in arguments)

    def record(self, part: object) -> Path:
        """The file that says that a part is done."""
        return self.folder / f"{str(part).replace('.', '_')}.json"

    def list_done(self) -> list[str]:
        """The names of the records that earlier runs with the same seed left."""
        return [path.name for path in self.folder.glob("*.json")] if self.is_kept else []

    @contextmanager
    def keep(self, part: object, done: dict[str, Any]) -> Iterator[None]:
        """Record what was done once the block has ended without an error."""
        yield
        if self.is_kept:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.record(part).write_text(json.dumps(done))

    def read_records(self) -> list[dict[str, Any]]:
        """What all runs with this seed have done."""
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.json"))]

    @contextmanager
    def naming(self, name: str, part: object) -> Iterator[Callable[[int], object]]:
        """Give what is told the number of each case: an error then says how to repeat it alone.

        The number is in a file meanwhile, which only a crash of the process leaves behind.
        """
        record = self.record(part)
        record.parent.mkdir(parents=True, exist_ok=True)
        for left in record.parent.glob(f"{glob.escape(record.stem)}.*{CASE}"):
            left.unlink()
        file = record.with_suffix(f".{os.getpid()}{CASE}")
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        text = self.repeating(name)
        try:
            yield lambda number: os.pwrite(descriptor, text.format(number).encode(), 0)
        except BaseException as error:
            error.add_note(file.read_text())
            raise
        finally:
            file.unlink(missing_ok=True)
            os.close(descriptor)

    def repeating(self, name: str) -> str:
        """The command that tries one case alone; {} stands for its number."""
        words = f"--seed={self.seed} --repeat={shlex.quote(f'{name}:')}{{}}"
        return f'repeat it alone: make test-faults ARGS="{words}"'

    def list_crashes(self) -> list[str]:
        """How to repeat each case in which a process was lost."""
        files = sorted(self.folder.glob(f"*{CASE}"))
        return [
            path.read_text()
            for path in files
            if not Path("/proc", path.name.split(".")[-2]).exists()  # the process that wrote it
        ]


def read_length(config: Any) -> Length:
    """The options as pytest read them; `make test`, which runs no fault, does not know them."""
    names = (*OPTIONS, "seed", "repeat")
    given = {name: config.getoption(f"--{name}", default=None) for name in names}
    return Length(**{name: value for name, value in given.items() if value is not None})
