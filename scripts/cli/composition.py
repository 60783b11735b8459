"""The settings that a command line asks for, composed and checked before Hydra starts anything."""

import argparse
import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import hydra
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException
from hydra.initialize import get_gh_backup, restore_gh_from_backup
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from configs.schema.kinds import Required
from scripts.cli.aliases import rename_keys
from scripts.cli.changes import list_changes
from scripts.cli.flags import parse_flags, starts_nothing
from scripts.cli.overrides import list_combinations, one_line, to_overrides
from scripts.cli.parts import check_parts
from scripts.cli.settings import CHANGES, describe_unknown, list_kinds, read_settings

OURS = "pkg://configs"
Schema = TypeVar("Schema")


class OwnConfigs(SearchPathPlugin):
    """Lets a user-defined command, whose YAML is elsewhere, find the groups of this project too."""

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
        with one that shows the settings, some may be missing. A mistake is a ValueError of one
        sentence.
        """
        arguments = parse_flags(words)
        name = arguments.config_name or self.config_name
        shows_settings = arguments.cfg or arguments.info
        if arguments.experimental_rerun or (starts_nothing(arguments) and not shows_settings):
            return []
        jobs = [arguments.overrides]
        if is_multirun(arguments):
            jobs = list_combinations(arguments.overrides)
        with self.searching(arguments):
            composed = [compose(name, overrides) for overrides in jobs]
            if shows_settings:
                for config, _ in composed:
                    fill_required(self.schema, config)
            return [self.read(name, *each) for each in composed]

    def searching(self, arguments: argparse.Namespace) -> AbstractContextManager[None]:
        """Hydra's search path with what the flags say of it."""
        return search_in(arguments.config_path or self.configs, arguments.config_dir)

    def list_choices(self, group: str, words: Sequence[str]) -> list[str]:
        """What may be chosen of a group; a flag among the words may add a folder of one's own."""
        with self.searching(parse_flags(words)):
            return GlobalHydra.instance().config_loader().get_group_options(group)

    def read(self, name: str, config: DictConfig, choices: Mapping[str, str | None]) -> Schema:
        """A composed config as settings; what is built by its name is built, to be checked.

        `name` is that of the config, `choices` what was chosen of each group.
        """
        values: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
        rename_keys(values)
        settings = read_settings(self.schema, values, self.config_name)
        if hasattr(settings, CHANGES):
            changes = list_changes(name, config, choices)
            settings = dataclasses.replace(settings, changes=changes)  # type: ignore[type-var]
        check_parts(settings)
        return settings


def fill_required(schema: Any, config: DictConfig) -> None:
    """Put something in the place of what a user must give and has not given."""
    for key, kind in list_kinds(schema).items():
        if kind == Required and (OmegaConf.is_missing(config, key) or not config[key]):
            config[key] = "…"


def is_multirun(arguments: argparse.Namespace) -> bool:
    """Whether there is a job for each combination of listed values."""
    return arguments.multirun or "hydra.mode=MULTIRUN" in arguments.overrides


def compose(config_name: str, overrides: list[str]) -> tuple[DictConfig, dict[str, str | None]]:
    """One config, and the choices of its groups; what is not there is named beside what is."""
    try:
        config = hydra.compose(config_name, to_overrides(overrides), return_hydra_config=True)
        choices = dict(config.hydra.runtime.choices)
        with open_dict(config):
            del config["hydra"]
        OmegaConf.to_container(config, resolve=True)
        return config, choices
    except MissingConfigException as error:
        raise ValueError(describe_missing(error)) from None
    except (HydraException, OmegaConfBaseException, ValueError, OSError, AssertionError) as error:
        unknown = re.search(r"Could not override '([^']+)'", str(error))
        if unknown is None or not overrides:
            raise ValueError(one_line(error)) from None
        others = [word for word in overrides if word.partition("=")[0].lstrip("+") != unknown[1]]
        # a key that a YAML overrides is in no word: then compared with those of the plain config
        plain, _ = compose(config_name, others if others != overrides else [])
        known = list(list_keys(OmegaConf.to_container(plain)))  # type: ignore[arg-type]
        raise ValueError(describe_unknown(unknown[1], known)) from None


def describe_missing(error: MissingConfigException) -> str:
    """Name a choice that its group does not have, and those that it has."""
    group = re.search(r"Available options in '([^']+)'", str(error))
    if group is None:
        return one_line(error)
    choice = (error.missing_cfg_file or "").removeprefix(f"{group[1]}/")
    there = ", ".join(error.options or ())
    return f"there is no choice '{choice}' of the group {group[1]}; there are {there}"


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
