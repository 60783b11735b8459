"""Whether a run that is resumed has the settings that it was started with."""

from collections.abc import Mapping
from typing import Any

import attention
from attention.heads.registry import complete_options
from mcan.runtime.settings import read_batch_size
from mcan.training.learning_rate import with_name

MUST_MATCH = ("seed", "train_split", "model", "attention", "optim")
MAY_CHANGE = {"optim.epochs"}  # more epochs are more of the same
BATCHES = {"limit_batches": None, "mixing": "none"}  # of `runtime`, with what they were at first


def check_same_settings(now: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Raise where the settings of a resumed run would make it another run."""
    for name in MUST_MATCH:
        old, new = (flatten(name, complete(name, each[name])) for each in (before, now))
        # a head's name first: the options of another head differ because of it
        keys = sorted({*old, *new} - MAY_CHANGE, key=lambda key: (key != "attention.name", key))
        for key in keys:
            check_same_value(key, old.get(key), new.get(key))
    if now["attention"].get("selection") == "batch":  # K* in validation depends on it
        sizes = read_batch_size(before), read_batch_size(now)
        check_same_value("runtime.evaluation_batch_size", *sizes)
    for name, default in BATCHES.items():
        values = [each.get("runtime", {}).get(name, default) for each in (before, now)]
        check_same_value(f"runtime.{name}", *values)


def complete(name: str, setting: Any) -> Any:
    """A setting with what older runs do without: options of head, model and batches."""
    if name == "attention" and setting["name"] in attention.available():
        return complete_options(**setting)
    if name == "optim" and "rate" in setting:
        before = {"share_images": False, "answer_prior": False}
        return {**before, **setting, "rate": with_name(setting["rate"])}
    if name == "model":
        return {"pca": 0, **setting}
    return setting


def check_same_value(key: str, old: Any, new: Any) -> None:
    """Raise where a setting is not what the run was started with."""
    if old != new:
        raise ValueError(
            f"the run to resume was started with {key}={old}, not {new}; give it the same "
            f"settings, or another name=…"
        )


def flatten(name: str, setting: Any) -> dict[str, Any]:
    """Dotted keys and values of a setting."""
    if not isinstance(setting, Mapping):
        return {name: setting}
    return {
        key: value
        for part, inner in setting.items()
        for key, value in flatten(f"{name}.{part}", inner).items()
    }
