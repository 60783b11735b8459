"""What a command line changes in the files it chooses: what tells a run from others."""

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

# what decides what a run learns, beside its seed
IN_RUN_NAME = (
    "data", "model", "attention", "optim", "train_split", "val_split", "glove", "init_from",
)  # fmt: skip
# of these, how the data gets there
NOT_IN_RUN_NAME = {
    f"data.{name}"
    for name in (
        "num_workers", "force", "url", "human_attention", "human_attention_url", "glove",
        "glove_url", "pause",
    )
}  # fmt: skip
NAME_PREFIX_GROUPS = ("data", "attention")  # groups whose `name` begins the name of every run
UNNAMED_GROUPS = ("hydra", "runtime", "launcher", "debug")  # groups that no name of a run has


def list_changes(
    config_name: str, config: DictConfig, choices: Mapping[str, str | None]
) -> dict[str, Any]:
    """Group choices other than the usual ones, and settings other than in the chosen files.

    The usual choices are those of the experiment, or of the command itself. Keys are dotted, and
    their order does not depend on the command line. Call it where Hydra's search path is set.
    """
    chosen = {group: name for group, name in sorted(choices.items()) if name is not None}
    words = [f"{group}={name}" for group, name in chosen.items() if not group.startswith("hydra")]
    places = GlobalHydra.instance().config_loader().get_search_path().get_path()
    preset, usual = read_files(config_name, *words, places=tuple(place.path for place in places))
    preset = copy.deepcopy(preset)
    values = OmegaConf.to_container(config)
    assert isinstance(values, dict)
    changes: dict[str, Any] = {
        group: name
        for group, name in chosen.items()
        if name != usual.get(group) and group.split("/")[0] not in UNNAMED_GROUPS
    }
    for group in NAME_PREFIX_GROUPS:
        name, own = values[group].get("name"), preset[group].get("name")
        if changes.get(group) == name or name != own:  # the name of the run says it
            changes.pop(group, None)
        preset[group]["name"] = name
    for each in (preset, values):
        each["glove"] = None if each.get("glove") == "none" else each.get("glove")
    for key in IN_RUN_NAME:
        changes |= dict(list_differences(key, values.get(key), preset.get(key)))
    return {key: value for key, value in changes.items() if key not in NOT_IN_RUN_NAME}


@functools.cache
def read_files(
    config_name: str, *choices: str, places: tuple[str | None, ...]
) -> tuple[dict[str, Any], dict[str, str | None]]:
    """The settings in the chosen files, and the usual choices: of a command or its experiment.

    The choice of an experiment always counts as a change. Cached, since a command reads its
    settings twice: to check them, and when Hydra has started it. `places` are those of the search
    path.
    """
    preset = OmegaConf.to_container(hydra.compose(config_name, [*choices]))
    assert isinstance(preset, dict)
    experiment = [word for word in choices if word.startswith("experiment=")]
    loader = GlobalHydra.instance().config_loader()
    defaults = loader.compute_defaults_list(config_name, experiment, RunMode.RUN)
    return preset, {**defaults.overrides.known_choices, "experiment": None}  # type: ignore[return-value]


def list_differences(key: str, now: Any, before: Any) -> Iterator[tuple[str, Any]]:
    """Dotted keys whose values differ; what has another name differs as a whole."""
    if isinstance(now, dict) and isinstance(before, dict) and now.get("name") == before.get("name"):
        for part in sorted({*now, *before}):
            yield from list_differences(f"{key}.{part}", now.get(part), before.get(part))
    elif now != before:
        yield key, now
