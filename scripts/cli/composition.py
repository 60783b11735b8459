"""The settings that a command line asks for, composed and checked before Hydra starts anything."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import hydra
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path, get_args_parser
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.initialize import get_gh_backup, restore_gh_from_backup
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from scripts.cli.aliases import rename_keys
from scripts.cli.overrides import list_combinations, one_line, to_overrides
from scripts.cli.parts import check_parts
from scripts.cli.settings import describe_unknown, read_settings

OURS = "pkg://configs"
Schema = TypeVar("Schema")


class OwnConfigs(SearchPathPlugin):
    """A user-defined command, whose YAML is elsewhere, finds the groups of this project too."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        if all(place.path != OURS for place in search_path.get_path()):
            search_path.append("mcan", OURS)


Plugins.instance().register(OwnConfigs)


@dataclass(frozen=True)
class Configuration(Generic[Schema]):
    """The YAML of a command and the class of its settings."""

    config_name: str
    schema: type[Schema]
    configs: str = OURS  # where the YAML is

    def compose(self, words: Sequence[str]) -> list[Schema]:
        """The checked settings of every job that the words of a command line start.

        That is one job, or with --multirun several. Hydra's flags mean what they mean to Hydra;
        one that starts no job leaves nothing to check. A mistake is a ValueError of one sentence.
        """
        arguments = get_args_parser().parse_args(words)
        shown = arguments.help or arguments.hydra_help or arguments.info
        if shown or arguments.shell_completion or arguments.experimental_rerun:
            return []
        jobs, name = [arguments.overrides], arguments.config_name or self.config_name
        if arguments.multirun or "hydra.mode=MULTIRUN" in arguments.overrides:
            jobs = list_combinations(arguments.overrides)
        with search_in(arguments.config_path or self.configs, arguments.config_dir):
            composed = [compose(name, overrides) for overrides in jobs]
        return [self.read(config) for config in composed]

    def read(self, config: dict[str, Any]) -> Schema:
        """A composed config as settings; what is built by its name is built, to be checked."""
        rename_keys(config)
        settings = read_settings(self.schema, config, self.config_name)
        check_parts(settings)
        return settings


def compose(config_name: str, overrides: list[str]) -> dict[str, Any]:
    """One config; the key of a wrong override is named beside the nearest there is."""
    try:
        config = hydra.compose(config_name, to_overrides(overrides))
        return OmegaConf.to_container(config, resolve=True)  # type: ignore[return-value]
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        unknown = re.search(r"Could not override '([^']+)'", str(error))
        if unknown is None or not overrides:
            raise ValueError(one_line(error)) from None
        others = [word for word in overrides if word.partition("=")[0].lstrip("+") != unknown[1]]
        # a key that a YAML overrides is in no word: then compared with those of the plain config
        known = list(list_keys(compose(config_name, others if others != overrides else [])))
        raise ValueError(describe_unknown(unknown[1], known)) from None


@contextlib.contextmanager
def search_in(place: str, folder: str | None) -> Iterator[None]:
    """Hydra's search path, as hydra.main makes it for config_path and --config-dir."""
    if "://" not in place:
        place = f"file://{os.path.abspath(place)}"
    search_path = create_config_search_path(place)
    if folder is not None:
        if not os.path.isdir(folder):
            raise ValueError(f"there is no folder {folder}, named by --config-dir")
        before = SearchPathQuery(provider="schema")
        search_path.prepend("command-line", f"file://{os.path.abspath(folder)}", before)
    backup = get_gh_backup()
    hydra.version.setbase("1.3")
    GlobalHydra.instance().clear()
    Hydra.create_main_hydra2("check", search_path)
    try:
        yield
    finally:
        restore_gh_from_backup(backup)


def list_keys(config: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Every dotted key of a config, groups included."""
    for key, value in config.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from list_keys(value, f"{prefix}{key}.")
