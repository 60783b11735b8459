"""Checkpoints with damaged bytes, and valid archives with unexpected contents."""

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from tests.faults.fuzzing import Case, Fixture, Format, Fuzzer
from tests.faults.json_contents import SCALARS, change_value, list_places
from tests.small_runs import assert_same

UNEXPECTED: list[Any] = [
    *(value for value in SCALARS if value != "\ud800"), [], [1, -2], {}, torch.zeros(2),
    {"_target_": "os.mkdir"}, "${oc.env:HOME}",
]  # fmt: skip


def checkpoint_format(run: Path, check: Callable[[Any], object] = lambda trained: None) -> Format:
    return Format(
        "checkpoint", "best.pt", partial(shutil.copy, run / "best.pt"), load_trained, check
    )


def prepare_bytes(folder: Path, fixture: Fixture) -> Case:
    """A damaged checkpoint is rejected, or all its weights are as written."""
    run = fixture("multimodal_run")
    weights = dict(load_checkpoint(run / "best.pt")["model"])
    kind = checkpoint_format(
        run, lambda trained: assert_same(dict(trained.model.state_dict()), weights)
    )
    return kind.prepare(folder, fixture)


def prepare_contents(folder: Path, fixture: Fixture) -> Case:
    """A value of another kind anywhere in a checkpoint, or none."""
    kind, path = checkpoint_format(fixture("multimodal_run")), folder / "best.pt"
    content = load_checkpoint(fixture("multimodal_run") / "best.pt")
    del content["optimizer"]  # large, and not read here
    places = [place for place in list_places(content) if place]

    def change_and_load(chance: random.Random) -> None:
        place, value = chance.choice(places), chance.choice(UNEXPECTED)
        torch.save(change_value(content, place, value, remove=chance.random() < 0.5), path)
        kind.read_or_reject(path)

    return change_and_load


FUZZERS = [
    Fuzzer("checkpoints, bytes", prepare_bytes, 300),
    Fuzzer("checkpoints, contents", prepare_contents, 400),
]
