"""Every backbone there is, by its name; a user's module adds one with `register_backbone`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from PIL import Image
from torch import nn

from data.backbones.network import Network, Own, Resize
from data.backbones.patch import descriptor as patch
from data.backbones.resnet import (
    ARCHITECTURES,
    NUM_FEATURES,
    Architecture,
    build_layers,
    list_shapes,
    load_weights,
)
from data.backbones.timm_model import PREFIX, open_timm
from data.backbones.weights import Weights, fetch_weights, hash_weights, read_weights
from data.features.manifest import GRID_FEATS, STRIDE, check_resize
from data.registry import Registry


class Backbone(Protocol):
    """What describes images: the fields are those of a store's manifest.

    One derived from Network describes several images at a time.
    """

    name: str
    num_features: int
    stride: int  # pixels of the resized image per cell
    weights: str  # a fingerprint; empty when there are none

    @property
    def resize(self) -> Resize:
        """Short and longest side of the images in pixels; None sets no limit."""

    def choose_grid(self, width: int, height: int) -> tuple[int, int]:
        """Rows and columns of cells for an image of this size in pixels."""

    def describe(self, image: Image.Image) -> np.ndarray:
        """Features of every cell of an image, (h, w, F) float32; any mode and size will do."""


# weights, device and resize, as the command line has them, to a backbone
Opener = Callable[[Weights, torch.device, Resize], Backbone]
BACKBONES: Registry[Opener] = Registry("backbone")
register_backbone = BACKBONES.register


def open_backbone(
    name: str,
    weights: Weights = None,
    device: torch.device | str = "cpu",
    resize: Resize | Own = "own",
) -> Backbone:
    """The backbone of that name, with the weights of a checkpoint; x152 may be spelt X-152.

    A store's manifest has the `name` and the `resize` that its features were made with.
    """
    if resize != "own":
        resize = check_resize(resize)
    if name.startswith(PREFIX):
        return open_timm(name, weights, torch.device(device), resize)
    plain = name.lower().replace("-", "")
    opener = BACKBONES[plain if plain in BACKBONES.values else name]
    return opener(weights, torch.device(device), GRID_FEATS if resize == "own" else resize)


class Patch:
    """The descriptor of patches, which has no weights, as a backbone."""

    name, num_features, stride, weights = "patch", patch.NUM_FEATURES, patch.CELL, ""
    resize: Resize = None
    choose_grid, describe = staticmethod(patch.choose_grid), staticmethod(patch.describe)

    def __init__(self, weights: Weights, device: torch.device, resize: Resize) -> None:
        if weights:
            raise ValueError("backbone patch has no weights: leave weights= out")


def open_resnet(
    architecture: Architecture, weights: Weights, device: torch.device, resize: Resize
) -> Network:
    """A residual network with the weights of a checkpoint; torchvision's may be downloaded."""
    if resize is None:
        raise ValueError(
            f"backbone {architecture.name} needs a resize of [short side, long side] in pixels"
        )
    if not weights and architecture.detectron:
        raise ValueError(
            f"backbone {architecture.name} needs grid-feats-vqa's checkpoint: download "
            f"{architecture.address} and pass weights={architecture.name}.pth"
        )
    path = Path(weights) if weights else fetch_weights()
    layers = build_layers(architecture)
    state = read_weights(architecture, path, list_shapes(layers))
    try:
        load_weights(layers, state)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; copy or download it again") from None
    return make_network(architecture, layers, device, resize, hash_weights(state))


def make_network(
    architecture: Architecture,
    layers: nn.Module,
    device: torch.device | str = "cpu",
    resize: tuple[int, int] = GRID_FEATS,
    weights: str = "",
) -> Network:
    """The layers of a residual network as a backbone."""
    return Network(
        architecture.name,
        layers,
        num_features=NUM_FEATURES,
        stride=STRIDE,
        mean=architecture.mean,
        std=architecture.std,
        channels=architecture.channels,
        device=device,
        resize=resize,
        weights=weights,
    )


for key, architecture in ARCHITECTURES.items():
    register_backbone(key, partial(open_resnet, architecture))
register_backbone("patch", Patch)
register_backbone(f"{PREFIX}<model>", partial(open_timm, f"{PREFIX}<model>"))  # for lists of names
