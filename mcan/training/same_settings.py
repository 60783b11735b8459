"""Whether a run that is resumed has the settings that it was started with."""

from collections.abc import Iterator, Mapping
from typing import Any

import attention
from attention.heads.registry import complete_options
from mcan.runtime.settings import read_batch_size
from mcan.training.learning_rate import with_name

MUST_MATCH = ("seed", "train_split", "val_split", "model", "attention", "optim")
MAY_CHANGE = {"optim.epochs"}  # more epochs are more of the same
BATCHES = {"limit_batches": None, "mixing": "none"}  # of `runtime`, with what they were at first


def check_same_settings(now: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Raise where the settings of a resumed run would make it another run."""
    for key, old, new in list_values(now, before):
        if key not in MAY_CHANGE:
            check_same_value(key, old, new)


def list_values(
    now: Mapping[str, Any], before: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """What decides what a run learns: each key, with its value before and now."""
    for name in MUST_MATCH:
        old, new = (complete(name, each[name]) for each in (before, now))
        # a head's name first: the options of another head differ because of it
        yield from sorted(pair_values(name, old, new), key=lambda each: each[0] != "attention.name")
    if now["attention"].get("selection") == "batch":  # K* in validation depends on it
        yield "runtime.evaluation_batch_size", read_batch_size(before), read_batch_size(now)
    for name, default in BATCHES.items():
        old, new = (each.get("runtime", {}).get(name, default) for each in (before, now))
        yield f"runtime.{name}", old, new


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
        before, now = ("null" if value is None else value for value in (old, new))
        raise ValueError(
            f"the run to resume was started with {key}={before}, not {now}; give it the same "
            f"settings, or another name=…"
        )


def pair_values(key: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Dotted keys with both values of a setting; one that was a group only once stays whole."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        yield key, old, new
        return
    for part in sorted({*old, *new}, key=str):
        yield from pair_values(f"{key}.{part}", old.get(part), new.get(part))
