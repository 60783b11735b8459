"""The default name of a training run: its data, head and seed, and what sets it apart from others.

shapes-multimodal-seed1, and with optim.batch_size=16 shapes-multimodal-seed1-batch_size_16
"""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from omegaconf import OmegaConf

from configs.schema.training import Train
from mcan.training.same_settings import check_same_settings
from scripts.cli.changes import IN_RUN_NAME
from scripts.cli.composition import list_keys

LONGEST = 120  # letters; a hash stands for what is cut off
PLAIN = re.compile(r"[\w.+]+", re.ASCII)  # text that a folder name can hold as it is


def choose_folder(settings: Train) -> Path:
    """Where the run is kept; a run to resume may have another default name than it has now."""
    runs = Path(settings.runs, "debug") if settings.is_debug else Path(settings.runs)
    if settings.name:
        return runs / settings.name
    path = runs / name_run(settings)
    if not settings.resume or path.is_dir():
        return path
    name = start_name(settings)
    found = [
        config.parent
        for config in sorted(runs.glob("*/config.yaml"))
        if f"{config.parent.name}-".startswith(f"{name}-") and is_config_of(config, settings)
    ]
    if len(found) > 1:
        named = ", ".join(folder.name for folder in found)
        raise ValueError(f"the run to resume may be any of {named} in {runs}; choose it by name=…")
    return found[0] if found else path


def start_name(settings: Train) -> str:
    """How the names of all runs with this data, head and seed begin; older ones end there."""
    name = f"{settings.data.name}-{settings.attention['name']}-seed{settings.seed}"
    return re.sub(r"[/\0]", "_", name)


def name_run(settings: Train) -> str:
    """A folder name that tells the run apart, however its settings were given."""
    start, parts = start_name(settings), name_changes(settings)
    name = "-".join([start, *parts])
    if len(name) <= LONGEST:
        return name
    while parts and len("-".join([start, *parts])) > LONGEST - 9:
        parts.pop()
    return "-".join([start[: LONGEST - 9], *parts, digest(name, 8)])


def name_changes(settings: Train) -> list[str]:
    """Each change as a part of the name, such as batch_size_16 or model_large."""
    parts: list[str] = []
    in_name = {name: settings.composed[name] for name in ("seed", *IN_RUN_NAME)}
    ends = [key.rpartition(".")[2] for key in list_keys(in_name)]
    for key, value in settings.changes.items():
        if key == "experiment":  # first, and without the head: paper_multimodal is paper
            parts.insert(0, show_value(value.removesuffix(f"_{settings.attention['name']}")))
        else:
            end = key.rpartition(".")[2]  # a key that several groups have keeps its group
            parts.append(f"{end if ends.count(end) <= 1 else key}_{show_value(value)}")
    return parts


def show_value(value: Any) -> str:
    """A value in letters that every file system takes; two values never look the same."""
    if isinstance(value, Mapping):  # the name of what it describes comes first, alone
        first = [show_value(value["name"])] if "name" in value else []
        rest = (
            f"{key}_{show_value(value[key])}" for key in sorted(value, key=str) if key != "name"
        )
        return "_".join([*first, *rest])
    if isinstance(value, list | tuple):
        return "_".join(map(show_value, value)) or "empty"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if not isinstance(value, str) or PLAIN.fullmatch(text):
        return text
    path = PurePath(os.path.normpath(text))
    last = "_".join(path.parts[-2:]) if path.suffix == ".pt" else path.name
    return f"{re.sub(r'[^a-zA-Z0-9.+]+', '_', last).strip('_')}_{digest(str(path), 4)}".lstrip("_")


def digest(text: str, length: int) -> str:
    """A few letters for a text, always the same."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def is_config_of(path: Path, settings: Train) -> bool:
    """Whether a stored config is one that the run may resume; optim.epochs alone may differ."""
    now = settings.composed
    try:
        before: Any = OmegaConf.to_container(OmegaConf.load(path))
        check_same_settings(now, before)
        keys = ("val_split", "glove", "init_from")
        same = all((before.get(key) or None) == (now.get(key) or None) for key in keys)
        return bool(same and before["data"]["root"] == now["data"]["root"])
    except Exception:  # a file that is damaged, or of something else
        return False
