"""A network as a backbone: any picture in, one vector for each cell of 32 pixels out."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from data.backbones.architecture import NUM_FEATURES, Architecture
from data.backbones.residual import build_layers, list_shapes, load_weights
from data.backbones.weights import fetch_weights, fingerprint, read_weights
from data.manifest import GRID_FEATS, STRIDE
from data.patch import flatten


def choose_size(width: int, height: int, resize: tuple[int, int] = GRID_FEATS) -> tuple[int, int]:
    """Width and height in pixels after the resize: the short side as asked, the long limited."""
    # step by step as detectron2 does it: another order would now and then round to another pixel
    short, long = resize
    scale = short / min(width, height)
    new_width, new_height = (scale * width, short) if height < width else (short, scale * height)
    if max(new_width, new_height) > long:
        scale = long / max(new_width, new_height)
        new_width, new_height = scale * new_width, scale * new_height
    return max(1, int(new_width + 0.5)), max(1, int(new_height + 0.5))


class Network:
    """A residual network with its weights on a device; `weights` is their fingerprint."""

    num_features = NUM_FEATURES

    def __init__(
        self,
        architecture: Architecture,
        layers: nn.Module,
        device: torch.device,
        resize: tuple[int, int] = GRID_FEATS,
        weights: str = "",
    ) -> None:
        self.name, self.resize, self.weights = architecture.name, resize, weights
        self.device, self.swaps_channels = device, architecture.channels == "BGR"
        # the layout in which convolutions are fastest on a CPU: a quarter less time
        self.layout = torch.channels_last if device.type == "cpu" else torch.contiguous_format
        self.layers = layers.to(device=device, memory_format=self.layout).eval()  # type: ignore[call-overload]
        self.mean = torch.tensor(architecture.mean, device=device)[:, None, None]
        self.std = torch.tensor(architecture.std, device=device)[:, None, None]

    def choose_pixels(self, width: int, height: int) -> tuple[int, int]:
        """Rows and columns of pixels that the network sees of an image of this size."""
        columns, rows = choose_size(width, height, self.resize)
        return rows, columns

    def choose_grid(self, width: int, height: int) -> tuple[int, int]:
        """Rows and columns of cells for an image of this size in pixels."""
        rows, columns = self.choose_pixels(width, height)
        return -(-rows // STRIDE), -(-columns // STRIDE)

    def prepare(self, image: Image.Image) -> np.ndarray:
        """What the network sees of a picture of any mode: upright, resized RGB, (H, W, 3) uint8."""
        image = flatten(image)
        size = choose_size(*image.size, self.resize)
        return np.array(image.resize(size, Image.Resampling.BILINEAR))

    @torch.inference_mode()
    def describe_pixels(self, pixels: np.ndarray) -> torch.Tensor:
        """Features (B, h, w, F) float32 of prepared pictures (B, H, W, 3)."""
        images = torch.from_numpy(pixels).to(self.device).permute(0, 3, 1, 2)
        if self.swaps_channels:
            images = images.flip(1)
        images = ((images.float() - self.mean) / self.std).contiguous(memory_format=self.layout)
        # a CUDA device would round to TF32, and choose its kernels by what is quickest today
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            features: torch.Tensor = self.layers(images)  # (B, F, h, w)
        return features.permute(0, 2, 3, 1).cpu()

    def describe(self, image: Image.Image) -> np.ndarray:
        """Describe every cell of a picture, (h, w, F) float32; any mode and size will do."""
        array: np.ndarray = self.describe_pixels(self.prepare(image)[None])[0].numpy()
        return np.ascontiguousarray(array)


def open_network(
    architecture: Architecture,
    weights: str | Path | None,
    device: torch.device,
    resize: tuple[int, int] = GRID_FEATS,
) -> Network:
    """Build a network and give it the weights of a checkpoint; torchvision's may be downloaded."""
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
    return Network(architecture, layers, device, resize, fingerprint(state))
