"""The models that the page offers, each loaded when it is first asked."""

import functools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from mcan.evaluation.single_question import SingleQuestionModel, open_with_backbone
from mcan.evaluation.trained_model import find_checkpoint, load_trained, name_run
from mcan.runtime.settings import Precision
from scripts.cli.checkpoints import find_run

MOST_LOADED = 4  # models that stay in memory


class ModelList:
    """Models by name; the ones used last stay loaded.

    `changed` holds options of attention heads to replace, each in the heads that have it.
    """

    def __init__(
        self,
        checkpoints: Mapping[str, Path],
        device: torch.device,
        *,
        changed: Mapping[str, Any],
        weights: str | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.checkpoints, self.device, self.changed = dict(checkpoints), device, changed
        self.several = len(checkpoints) > 1
        self.weights, self.precision = weights, precision
        self.load_once = functools.lru_cache(MOST_LOADED)(self.load)
        self.lock = threading.Lock()  # one model is loaded at a time

    @property
    def names(self) -> list[str]:
        """What the models are called, in the order in which they are offered."""
        return list(self.checkpoints)

    def get(self, name: str) -> SingleQuestionModel:
        """A model, loaded now unless it is already."""
        with self.lock:
            return self.load_once(self.checkpoints[name])

    def leave_out(self, name: str) -> None:
        """Offer a model no longer."""
        del self.checkpoints[name]

    def load(self, path: Path) -> SingleQuestionModel:
        """The model of a checkpoint; an only model must have every option that is changed."""
        trained = load_trained(path, self.device, self.changed, only_known=self.several)
        has_weights = trained.manifest.backbone.lower() != "patch"
        weights = self.weights if has_weights else None
        return open_with_backbone(trained, weights=weights, precision=self.precision)


def find_checkpoints(named: Sequence[str], runs: Path) -> dict[str, Path]:
    """The named checkpoints, or without a name the best of every run, by the runs' names.

    Where names repeat, paths take their place.
    """
    if named:
        paths = [find_checkpoint(find_run(name, runs)) for name in named]
    else:
        paths = sorted(runs.glob("*/best.pt"))
    if not paths:
        raise FileNotFoundError(
            f"{runs} holds no run with a best.pt: `make train` makes one; or name checkpoint=…"
        )
    names = [name_run(path) for path in paths]
    return {
        name if names.count(name) == 1 else str(path): path
        for name, path in zip(names, paths, strict=True)
    }
