"""How every command starts: Hydra composes its config; a user's mistake ends it in one sentence."""

import difflib
import os
import re
import sys
from collections.abc import Callable
from typing import NoReturn

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

USER_ERROR, INTERRUPTED = 2, 130  # exit codes


def command(config_name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """Turn `run(config)` into the `main()` of the command of configs/<config_name>.yaml."""

    def decorate(run: Callable[[DictConfig], None]) -> Callable[[], None]:
        def guarded(config: DictConfig) -> None:
            try:
                run(config)
            except (ValueError, OSError) as error:
                fail(error)
            except KeyboardInterrupt:
                print("interrupted", file=sys.stderr)
                sys.exit(INTERRUPTED)

        def main() -> None:
            overrides = [word for word in sys.argv[1:] if not word.startswith("-")]
            if len(overrides) == len(sys.argv) - 1:  # no flag of Hydra's own (--help, --multirun)
                check(config_name, overrides)
            hydra.main(version_base="1.3", config_path="pkg://configs", config_name=config_name)(
                guarded
            )()

        return main

    return decorate


def check(config_name: str, overrides: list[str]) -> None:
    """Compose before Hydra does, so that a misspelt key is named beside the nearest real one."""
    with hydra.initialize_config_module("configs", version_base="1.3"):
        defaults = hydra.compose(config_name)
        try:
            config = hydra.compose(config_name, overrides)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            fail(ValueError(explain(error, key_names(defaults))))
    needed = sorted(OmegaConf.missing_keys(defaults))
    absent = [name for name in needed if OmegaConf.select(config, name) in (None, "")]
    if absent:
        fail(ValueError(f"{config_name} needs {' '.join(f'{name}=…' for name in absent)}"))


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
        name = unknown.group(1)
        near = difflib.get_close_matches(name, keys, n=1, cutoff=0.0)
        return f"there is no setting '{name}'; did you mean '{near[0]}'?" if near else text
    return " ".join(text.split())


def fail(error: Exception) -> NoReturn:
    """End with one sentence and exit code 2; HYDRA_FULL_ERROR=1 shows where it came from."""
    if os.environ.get("HYDRA_FULL_ERROR") == "1":
        raise error
    if isinstance(error, OSError) and error.strerror and error.filename:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = " ".join(str(error).split())
    print(f"error: {message}", file=sys.stderr)
    sys.exit(USER_ERROR)
