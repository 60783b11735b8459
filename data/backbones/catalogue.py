"""Every backbone there is, by its name."""

from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from PIL import Image

from data import patch
from data.backbones.architecture import ARCHITECTURES, find_architecture
from data.backbones.network import open_network
from data.manifest import GRID_FEATS, check_resize


class Backbone(Protocol):
    """What describes pictures: the fields are those of a store's manifest."""

    name: str
    num_features: int
    weights: str  # a fingerprint; empty when there are none

    @property
    def resize(self) -> tuple[int, int] | None:
        """Short and longest side of the images in pixels; None sets no limit."""

    def choose_grid(self, width: int, height: int) -> tuple[int, int]:
        """Rows and columns of cells for an image of this size in pixels."""

    def describe(self, image: Image.Image) -> np.ndarray:
        """Describe every cell of a picture, (h, w, F) float32; any mode and size will do."""


class Patch:
    """The backbone without weights, as `Backbone` wants it."""

    name, num_features, weights = "patch", patch.NUM_FEATURES, ""
    resize: tuple[int, int] | None = None

    def choose_grid(self, width: int, height: int) -> tuple[int, int]:
        """Rows and columns of cells for an image of this size in pixels."""
        return patch.choose_grid(width, height)

    def describe(self, image: Image.Image) -> np.ndarray:
        """Describe every cell of a picture, (h, w, F) float32."""
        return patch.describe(image)


def open_backbone(
    name: str,
    weights: str | Path | None = None,
    device: torch.device | str = "cpu",
    resize: tuple[int, int] | None = GRID_FEATS,
) -> Backbone:
    """The backbone of that name in any spelling, with the weights of a checkpoint.

    A store's manifest has the `name` and the `resize` that its features were made with.
    """
    if name.lower() == "patch":
        if weights:
            raise ValueError("backbone patch has no weights: leave weights= out")
        return Patch()
    architecture = find_architecture(name)
    if architecture is None:
        raise ValueError(
            f"there is no backbone '{name}'; there are {', '.join([*ARCHITECTURES, 'patch'])}"
        )
    sides = check_resize(resize)
    if sides is None:
        raise ValueError(f"backbone {name} needs a resize of [short side, long side] in pixels")
    return open_network(architecture, weights, torch.device(device), sides)
