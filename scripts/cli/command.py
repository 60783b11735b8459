"""How every command starts: Hydra composes its config, which becomes typed settings, for `run`.

A user's mistake ends it in one sentence with exit code 2, before anything is made or read.
"""

import argparse
import contextlib
import faulthandler
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar, get_type_hints

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from scripts import collect_garbage
from scripts.cli.aliases import rename_word
from scripts.cli.composition import OURS, Configuration, compose, is_multirun
from scripts.cli.flags import list_flags, parse_flags, starts_nothing
from scripts.cli.help import describe_command
from scripts.cli.overrides import (
    list_combinations,
    one_line,
    quote_literal,
    quote_text,
    quote_value,
    to_overrides,
)
from scripts.cli.terminal import ignore_closed_terminal, shorten_warnings
from scripts.cluster.exit_status import leave_exit_status, read_exit_status
from scripts.cluster.parent import stop_with_parent

CRASHED, USER_ERROR, INTERRUPTED = 1, 2, 130  # exit codes
Schema = TypeVar("Schema")


@dataclass(frozen=True, kw_only=True)
class Command(Configuration[Schema]):
    """A command: calling it without arguments starts `run` from the command line."""

    run: Callable[[Schema], None]
    literal: tuple[str, ...] = ()  # settings whose commas and brackets mean nothing to Hydra

    def __call__(self) -> None:
        """Show what a flag asks for; else check the command line, then start the job or jobs."""
        collect_garbage()
        stop_with_parent()
        name_fatal_signals()
        shorten_warnings()
        try:
            arguments = self.parse(sys.argv[1:])
            if starts_nothing(arguments):
                ignore_closed_terminal()  # --help | head
            if arguments.help:
                print(self.describe(arguments))
            else:
                self.start(arguments)
        except ValueError as error:
            fail(error)
        except KeyboardInterrupt:
            if not leave_exit_status(INTERRUPTED, "interrupted"):
                print("interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The flags and the settings of a command line."""
        return parse_flags(read_words(words, self.literal))

    def describe(self, arguments: argparse.Namespace) -> str:
        """What --help prints; of a list of values, the first is shown."""
        module = sys.modules[self.run.__module__]
        name = module.__spec__.name if module.__spec__ else module.__name__
        overrides = list_combinations(arguments.overrides)[0]
        with self.searching(arguments):
            config_name = arguments.config_name or self.config_name
            config, _ = compose(config_name, overrides)
            return describe_command(
                name.removesuffix(".__main__"),
                module.__doc__ or self.run.__doc__ or "",
                config_name,
                overrides,
                config,
            )

    def start(self, arguments: argparse.Namespace) -> None:
        """Start the job; Hydra starts several, or shows what its flags ask for."""
        flags = list_flags(arguments)
        words = [*flags, *arguments.overrides]
        composed = self.compose(words)
        if self.configs == OURS and not flags and not any(map(is_of_hydra, arguments.overrides)):
            with exit_codes():  # Hydra would compose the same settings two more times
                self.run(*composed)
            return
        sys.argv[1:] = to_overrides(words)
        start = hydra.main(
            version_base="1.3", config_path=self.configs, config_name=self.config_name
        )(self.run_config)
        if not is_multirun(arguments) or has_own_place(arguments.overrides):
            start()
            return
        with tempfile.TemporaryDirectory() as place:  # Hydra's multirun writes its config there
            sys.argv.append(f"hydra.sweep.dir={quote_text(place)}")
            start()

    def run_config(self, config: DictConfig) -> None:
        """A job that Hydra starts."""
        with exit_codes():
            job = HydraConfig.get()
            assert job.job.config_name is not None
            self.run(self.read(job.job.config_name, config, dict(job.runtime.choices)))


@contextlib.contextmanager
def exit_codes() -> Iterator[None]:
    """Turn the way a job ends into an exit code."""
    try:
        yield
    except ConnectionAbortedError as error:
        # another process was lost: a crash, no mistake, so that it may be tried again
        _, cause = read_exit_status() or (0, "")
        if not cause:
            print(f"error: {describe(error)}", file=sys.stderr)
        sys.exit(CRASHED)
    except shortages() as error:
        fail(error, CRASHED)
    except (ValueError, OSError, OmegaConfBaseException) as error:
        fail(error)
    except SystemExit as stop:
        leave_exit_status(int(stop.code or 0))
        raise


def command(
    config_name: str, configs: str = OURS, literal: tuple[str, ...] = ()
) -> Callable[[Callable[[Schema], None]], Command[Schema]]:
    """Turn `run(settings)` into the command of <config_name>.yaml, to be called without arguments.

    The type of `settings` is the schema. A user-defined command names the package of its YAML,
    such as configs="pkg://my_package.configs", or is started with --config-dir.
    """

    def decorate(run: Callable[[Schema], None]) -> Command[Schema]:
        hints = get_type_hints(run)
        hints.pop("return", None)
        (schema,) = hints.values()
        return Command(config_name, schema, configs, run=run, literal=literal)

    return decorate


def read_words(words: Sequence[str], literal: Sequence[str] = ()) -> list[str]:
    """The words of a command line as Hydra reads them: texts quoted, old names replaced."""
    quoted = [quote_value(quote_literal(word, literal)) for word in words]
    return [rename_word(word) for word in quoted]


def shortages() -> tuple[type[Exception], ...]:
    """The errors of full memory, with torch's own where the command has imported torch."""
    torch = sys.modules.get("torch")
    return (MemoryError,) if torch is None else (MemoryError, torch.OutOfMemoryError)


def is_of_hydra(word: str) -> bool:
    """Whether an override is of Hydra itself, as hydra.verbose=true or hydra/launcher=joblib."""
    return word.lstrip("+~").startswith("hydra")


def has_own_place(overrides: Sequence[str]) -> bool:
    """Whether a multirun has a folder for its files, or a launcher that needs them to stay."""
    return any(word.startswith(("hydra.sweep.dir=", "hydra/launcher=")) for word in overrides)


def name_fatal_signals() -> None:
    """Have a crash say where it happened; a store cut during a copy then names its file."""
    if sys.__stderr__ is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)


def fail(error: Exception, code: int = USER_ERROR) -> NoReturn:
    """End with one sentence and an exit code; HYDRA_FULL_ERROR=1 shows where it came from."""
    if os.environ.get("HYDRA_FULL_ERROR") == "1":
        raise error
    if not leave_exit_status(code, f"error: {describe(error)}"):
        print(f"error: {describe(error)}", file=sys.stderr)
    sys.exit(code)


def describe(error: Exception) -> str:
    """An error in one sentence."""
    if isinstance(error, shortages()) and not (isinstance(error, MemoryError) and str(error)):
        reason = ". ".join(one_line(error).split(". ")[:2]) or "MemoryError"
        return f"the device's memory is full: use one with more of it ({reason})"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return one_line(error)
