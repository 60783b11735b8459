"""What settings name: found or built once before data is read, so that a wrong name ends early."""

import importlib
from collections.abc import Iterable
from typing import Any

from data.vqa.layout import LAYOUTS, Layout


def check_parts(settings: Any) -> None:
    """Import the user's modules, then find or build what the settings name, where they do.

    A wrong name or option is a ValueError of one sentence.
    """
    import_modules(getattr(settings, "modules", []))
    check_splits(settings)
    options, optim = getattr(settings, "attention", {}), getattr(settings, "optim", None)
    # imported here: `scripts.data` and its worker processes do without torch
    if options.get("name") == "???":
        raise ValueError("attention=own needs the name of your head: attention.name=…")
    if "name" in options:
        from mcan.head_schedule import ScheduledHead

        ScheduledHead(options, optim.epochs if optim else 1).check()
    if optim is not None:
        from mcan.training.learning_rate import build_rate

        build_rate(optim.rate)
    if hasattr(settings, "tracker"):
        from mcan.training.trackers import check_trackers

        check_trackers(settings.tracker)


def check_splits(settings: Any) -> None:
    """Raise where a split is none of the layout's.

    A checkpoint names its layout itself: before it is read, the split of any layout may be meant.
    """
    data: Any = getattr(settings, "data", None)
    names = [data.layout] if hasattr(data, "layout") else list(LAYOUTS)
    layouts = [LAYOUTS[name] for name in names]
    for key in ("split", "train_split", "val_split"):
        if hasattr(settings, key):
            check_split(getattr(settings, key), layouts, training=key == "train_split")


def check_split(split: str, layouts: Iterable[Layout], training: bool = False) -> None:
    """Raise the sentence of the first layout if none has the split."""
    problems = []
    for layout in layouts:
        try:
            layout.divide_training(split) if training else layout.split_names(split)
        except ValueError as error:
            problems.append(error)
        else:
            return
    raise problems[0]


def import_modules(names: Iterable[str]) -> None:
    """Import the user's own modules, which register heads, metrics, trackers and the like."""
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"the module '{name}' named in modules= was not found: {error}"
            ) from None
