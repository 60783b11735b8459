"""How every command starts: Hydra composes its config; a user's mistake ends it in one sentence."""

import faulthandler
import os
import re
import sys
from collections.abc import Callable
from typing import NoReturn

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from scripts.overrides import choose_groups, quote_value
from scripts.restarts import count_restarts
from scripts.settings import describe_unknown, find_problems
from scripts.verdict import leave_verdict, read_verdict

CRASHED, USER_ERROR, INTERRUPTED = 1, 2, 130  # exit codes


def command(config_name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """Turn `run(config)` into the `main()` of the command of configs/<config_name>.yaml."""

    def decorate(run: Callable[[DictConfig], None]) -> Callable[[], None]:
        def guarded(config: DictConfig) -> None:
            try:
                run(config)
            except ConnectionAbortedError as error:
                # another process was lost: a crash, no mistake, so that it may be tried again
                print(f"error: {describe(error)}", file=sys.stderr)
                sys.exit(CRASHED)
            except (ValueError, OSError, OmegaConfBaseException) as error:
                fail(error)
            except SystemExit as stop:
                leave_verdict(int(stop.code or 0))
                raise

        def main() -> None:
            name_fatal_signals()
            settled = read_verdict() if count_restarts() else None
            if settled is not None:  # a mistake or a request to stop: nothing to try again
                sys.exit(settled[0])
            sys.argv[1:] = map(quote_value, sys.argv[1:])
            overrides = [word for word in sys.argv[1:] if not word.startswith("-")]
            try:
                if len(overrides) == len(sys.argv) - 1:  # no flag of Hydra's own (--help, …)
                    check(config_name, overrides)
                hydra.main(
                    version_base="1.3", config_path="pkg://configs", config_name=config_name
                )(guarded)()
            except KeyboardInterrupt:
                if not leave_verdict(INTERRUPTED, "interrupted"):
                    print("interrupted", file=sys.stderr)
                sys.exit(INTERRUPTED)

        return main

    return decorate


def name_fatal_signals() -> None:
    """Have a crash say where it happened; a store cut during a copy then names its file."""
    if sys.__stderr__ is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)


def check(config_name: str, overrides: list[str]) -> DictConfig:
    """Compose before Hydra does, so that a wrong key or value is named in one sentence."""
    with hydra.initialize_config_module("configs", version_base="1.3"):
        defaults = hydra.compose(config_name)
        try:
            config = hydra.compose(config_name, overrides)
            chosen = choose(config_name, overrides)
            settings = OmegaConf.to_container(config, resolve=True)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            fail(ValueError(explain(error, key_names(choose(config_name, overrides)))))
    needed = sorted(OmegaConf.missing_keys(defaults))
    absent = [name for name in needed if OmegaConf.select(config, name) in (None, "")]
    if absent:
        fail(ValueError(f"{config_name} needs {' '.join(f'{name}=…' for name in absent)}"))
    for problem in find_problems(settings, OmegaConf.to_container(chosen)):
        fail(ValueError(problem))
    return config


def choose(config_name: str, overrides: list[str]) -> DictConfig:
    """The config of the groups that were chosen, before any setting in them is changed."""
    groups = GlobalHydra.instance().config_loader().list_groups("")
    try:
        return hydra.compose(config_name, choose_groups(overrides, groups))
    except (HydraException, OmegaConfBaseException, ValueError):
        return hydra.compose(config_name)


def key_names(config: DictConfig, prefix: str = "") -> list[str]:
    """Every dotted key of a config, groups included."""
    names = []
    for key in config:
        name = f"{prefix}{key!s}"
        names.append(name)
        if not OmegaConf.is_missing(config, key) and isinstance(config[key], DictConfig):
            names += key_names(config[key], f"{name}.")
    return names


def explain(error: Exception, keys: list[str]) -> str:
    """Hydra's words for a bad override, in one sentence that names the nearest key there is."""
    text = str(error)
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown is None:
        unknown = re.search(r"Key '([^']+)' is not in struct", text)
    if unknown is not None:
        return describe_unknown(unknown.group(1), keys)
    return " ".join(text.split())


def fail(error: Exception) -> NoReturn:
    """End with one sentence and exit code 2; HYDRA_FULL_ERROR=1 shows where it came from."""
    if os.environ.get("HYDRA_FULL_ERROR") == "1":
        raise error
    if not leave_verdict(USER_ERROR, f"error: {describe(error)}"):
        print(f"error: {describe(error)}", file=sys.stderr)
    sys.exit(USER_ERROR)


def describe(error: Exception) -> str:
    """An error in one sentence."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
