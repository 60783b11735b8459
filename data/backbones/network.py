"""Layers as a backbone: any image in, one vector per cell of the grid out."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import nn

from data.features.manifest import GRID_FEATS
from data.io.images import to_rgb

Resize = tuple[int, int] | None
Own = Literal["own"]  # the resize that a backbone has by default


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


def round_side(pixels: int, stride: int) -> int:
    """The multiple of the stride nearest to a side of an image; at least one cell."""
    return max(1, int(pixels / stride + 0.5)) * stride


class Network:
    """Layers (B, 3, H, W) → (B, F, h, w) on a device, sides divided by `stride` and rounded up.

    `mean` and `std` are of pixels from 0 to 255, in the order of `channels`, RGB or BGR; `weights`
    is a fingerprint of the layers' weights. With `whole_cells` both sides of an image are resized
    to the nearest multiple of the stride: patches that are cut at the border would be left out.
    """

    def __init__(
        self,
        name: str,
        layers: nn.Module,
        *,
        num_features: int,
        stride: int,
        mean: Sequence[float],
        std: Sequence[float],
        channels: str = "RGB",
        device: torch.device | str = "cpu",
        resize: tuple[int, int] = GRID_FEATS,
        weights: str = "",
        interpolation: Image.Resampling = Image.Resampling.BILINEAR,
        whole_cells: bool = False,
    ) -> None:
        self.name, self.resize, self.weights = name, resize, weights
        self.num_features, self.stride, self.whole_cells = num_features, stride, whole_cells
        self.interpolation = interpolation
        self.device, self.swaps_channels = torch.device(device), channels == "BGR"
        # the layout in which convolutions are fastest on a CPU: a quarter less time
        on_cpu = self.device.type == "cpu"
        self.layout = torch.channels_last if on_cpu else torch.contiguous_format
        self.layers = layers.to(device=self.device, memory_format=self.layout).eval()  # type: ignore[call-overload]
        self.mean = torch.tensor(mean, device=self.device)[:, None, None]
        self.std = torch.tensor(std, device=self.device)[:, None, None]

    def choose_pixels(self, width: int, height: int) -> tuple[int, int]:
        """Rows and columns of pixels that the network sees of an image of this size."""
        columns, rows = choose_size(width, height, self.resize)
        if not self.whole_cells:
            return rows, columns
        return round_side(rows, self.stride), round_side(columns, self.stride)

    def choose_grid(self, width: int, height: int) -> tuple[int, int]:
        """Rows and columns of cells for an image of this size in pixels."""
        rows, columns = self.choose_pixels(width, height)
        return -(-rows // self.stride), -(-columns // self.stride)

    def prepare(self, image: Image.Image) -> np.ndarray:
        """What the network sees of an image of any mode: upright, resized RGB, (H, W, 3) uint8."""
        image = to_rgb(image)
        rows, columns = self.choose_pixels(*image.size)
        return np.array(image.resize((columns, rows), self.interpolation))

    @torch.inference_mode()
    def describe_pixels(self, pixels: np.ndarray) -> torch.Tensor:
        """Features (B, h, w, F) float32 of prepared images (B, H, W, 3)."""
        images = torch.from_numpy(pixels).to(self.device).permute(0, 3, 1, 2)
        if self.swaps_channels:
            images = images.flip(1)
        images = ((images.float() - self.mean) / self.std).contiguous(memory_format=self.layout)
        # a CUDA device would round to TF32, and choose its kernels by what is quickest today
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            features: torch.Tensor = self.layers(images)  # (B, F, h, w)
        return features.permute(0, 2, 3, 1).cpu()

    def describe(self, image: Image.Image) -> np.ndarray:
        """Features of every cell of an image, (h, w, F) float32; any mode and size will do."""
        array: np.ndarray = self.describe_pixels(self.prepare(image)[None])[0].numpy()
        return np.ascontiguousarray(array)
