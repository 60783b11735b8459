"""What --help prints: what a command does, examples, its groups, every setting with its comment.

All of it is read from the command's docstring and from the YAML files that form its config.
"""

import importlib.resources
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from scripts.cli.overrides import to_overrides
from scripts.cli.settings import MISSING
from scripts.cli.yaml_comments import read_head, read_lines

WIDEST = 44  # of the column of settings; the comment of a longer one follows it
EXAMPLE = ("make ", "python -m ")
FLAGS = {
    "--help": "this page; with group=choice, the settings of that choice",
    "--cfg job": "print all settings as YAML and start nothing",
    "--info": "print which files the settings come from and start nothing",
    "--config-dir=folder": "search a folder of your own too, such as folder/attention/mine.yaml",
    "--multirun": "one job after another for every combination of key=a,b",
}


def describe_command(
    module: str, docstring: str, config_name: str, overrides: list[str], config: DictConfig
) -> str:
    """The page, within Hydra's search path; `config` is composed from the overrides."""
    values: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
    loader = GlobalHydra.instance().config_loader()
    defaults = loader.compute_defaults_list(config_name, to_overrides(overrides), RunMode.RUN)
    files = [
        (each.package or "", each.config_path or "", read_source(loader, each.config_path or ""))
        for each in defaults.defaults
        if not (each.config_path or "").startswith("hydra/")
    ]
    what, *more = docstring.strip().split("\n\n")
    title = " ".join(what.split())
    if not title.startswith("make "):
        title = f"{module}: {title}"
    (head,) = (read_head(text) for _, path, text in files if path == config_name)
    said = [*head, *(line for part in more for line in part.splitlines())]
    examples = [line for line in said if line.startswith(EXAMPLE)]
    notes = [line for line in head if not line.startswith(EXAMPLE)]
    groups = {
        f"{group}={'null' if choice is None else choice}": " | ".join(
            loader.get_group_options(group)
        )
        for group, choice in reversed(defaults.overrides.known_choices.items())
        if not group.startswith("hydra")
    }
    blocks = [
        [title, *notes],
        ["Usage:", f"  python -m {module} [group=choice …] [key=value …]"],
        ["Examples:", *(f"  {line}" for line in dict.fromkeys(examples))] if examples else [],
        ["Groups, group=choice:", *align(groups)] if groups else [],
        *list_settings(files, values),
        ["Flags:", *align(FLAGS)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def read_source(loader: Any, path: str) -> str:
    """The text of a config file, from the first place of the search path that has it."""
    for source in loader.get_sources():
        if source.scheme() in ("file", "pkg") and source.available() and source.is_config(path):
            folder = (
                Path(source.path)
                if source.scheme() == "file"
                else importlib.resources.files(source.path.replace("/", "."))
            )
            return folder.joinpath(f"{path}.yaml").read_text(encoding="utf-8")
    return ""


def list_settings(files: list[tuple[str, str, str]], config: dict[str, Any]) -> Iterator[list[str]]:
    """One block per group of settings, the command's own first; one line per setting."""
    comments: dict[str, str] = {}
    heads: dict[str, list[str]] = {}
    required = set()
    for package, _, text in files:
        if package:
            heads[package] = read_head(text) or heads.get(package, [])
        for name, (value, comment) in read_lines(text).items():
            key = f"{package}.{name}" if package else name
            comments[key] = comments.get(key) or comment
            if value == "???":
                required.add(key)
    blocks: dict[str, dict[str, str]] = {"": {}}
    for key, value in flatten(config, comments, ""):
        package = next((name for name in heads if key.startswith(f"{name}.")), "")
        shown, comment = f"{key}={as_typed(value)}", comments.get(key, "")
        if key in required and value in MISSING:
            shown, comment = f"{key}=…", f"required: {comment}".removesuffix(": ")
        blocks.setdefault(package, {})[shown] = comment
    for package, settings in blocks.items():
        title = f"Settings of {package}, key=value:" if package else "Settings, key=value:"
        if settings:
            yield [title, *(f"  # {line}" for line in heads.get(package, [])), *align(settings)]


def flatten(
    config: dict[str, Any], comments: dict[str, str], prefix: str
) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values; a mapping that a file has in braces is one value."""
    for name, value in config.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and value and key not in comments:
            yield from flatten(value, comments, f"{key}.")
        else:
            yield key, value


def as_typed(value: Any) -> str:
    """A value as one types it on the command line."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{as_typed(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(quote_commas, map(as_typed, value)))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) or "''"


def quote_commas(text: str) -> str:
    """An entry of a list that would be several."""
    return f'"{text}"' if "," in text and text[0] not in "[{" else text


def align(lines: dict[str, str]) -> Iterator[str]:
    """Two columns."""
    width = max((len(left) for left in lines if len(left) <= WIDEST), default=0)
    for left, right in lines.items():
        yield f"  {left:{width}}  {right}".rstrip()
