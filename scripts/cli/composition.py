"""The settings that a command line asks for, composed and checked before Hydra starts anything."""

import argparse
import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path, get_args_parser
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.initialize import get_gh_backup, restore_gh_from_backup
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from scripts.cli.aliases import rename_keys
from scripts.cli.overrides import choose_groups, to_overrides
from scripts.cli.parts import check_parts
from scripts.cli.settings import describe_unknown, read_settings

OURS = "pkg://configs"
Schema = TypeVar("Schema")
MISTAKES = (HydraException, OmegaConfBaseException, ValueError)


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
        if starts_nothing(arguments):
            return []
        name = arguments.config_name or self.config_name
        with search_in(arguments.config_path or self.configs, arguments.config_dir):
            composed = [compose(name, overrides) for overrides in list_jobs(arguments)]
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
    except MISTAKES as error:
        keys = list_keys(compose_groups(config_name, overrides))
        raise ValueError(explain(error, keys)) from None


def starts_nothing(arguments: argparse.Namespace) -> bool:
    """Whether Hydra only helps, or takes the config from a file of an earlier job."""
    shown = arguments.help or arguments.hydra_help or arguments.info or arguments.shell_completion
    return bool(shown or arguments.experimental_rerun)


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


def list_jobs(arguments: argparse.Namespace) -> list[list[str]]:
    """The overrides of each job: all there are, or with --multirun those of every combination."""
    overrides = arguments.overrides
    if not (arguments.multirun or "hydra.mode=MULTIRUN" in overrides):
        return [overrides]
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except HydraException as error:
        raise ValueError(one_line(error)) from None
    (jobs,) = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    return jobs


def compose_groups(config_name: str, overrides: list[str]) -> DictConfig:
    """The config of the groups that were chosen, before any setting in them is changed."""
    groups = GlobalHydra.instance().config_loader().list_groups("")
    try:
        return hydra.compose(config_name, choose_groups(overrides, groups))
    except MISTAKES:
        return hydra.compose(config_name)


def list_keys(config: DictConfig, prefix: str = "") -> list[str]:
    """Every dotted key of a config, groups included."""
    names = []
    for key in config:
        name = f"{prefix}{key!s}"
        names.append(name)
        if not OmegaConf.is_missing(config, key) and isinstance(config[key], DictConfig):
            names += list_keys(config[key], f"{name}.")
    return names


def explain(error: Exception, keys: list[str]) -> str:
    """Hydra's words for a bad override, in one sentence that names the nearest key there is."""
    for pattern in (r"Could not override '([^']+)'", r"Key '([^']+)' is not in struct"):
        unknown = re.search(pattern, str(error))
        if unknown is not None:
            return describe_unknown(unknown.group(1), keys)
    return one_line(error)


def one_line(error: Exception) -> str:
    """An error's words on one line."""
    return " ".join(str(error).split())
