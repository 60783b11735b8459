"""Random weights under detectron2's keys, and a plain forward of that layout to compare with.

Both are written from the layout alone: names, strides, groups, frozen batch norm (epsilon 1e-5).
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

State = dict[str, torch.Tensor]
SMALL = (64, 107)  # 600/1000, smaller: a test is about rounding and order, not about many pixels


@dataclass(frozen=True)
class Layout:
    """Blocks of the stages, groups, channels of the first stage's 3×3, where stages halve."""

    blocks: tuple[int, ...]
    groups: int
    middle: int
    stride_in_1x1: bool


LAYOUTS = {
    "r50": Layout((3, 4, 6, 3), 1, 64, True),
    "x101": Layout((3, 4, 23, 3), 32, 256, False),
    "x152": Layout((3, 8, 36, 3), 32, 256, False),
}


def list_convolutions(layout: Layout) -> dict[str, tuple[int, int, int, int]]:
    """{name without `backbone.`: shape (out, in of a group, side, side)} of every convolution."""
    shapes = {"stem.conv1": (64, 3, 7, 7)}
    before = 64
    for stage, number in enumerate(layout.blocks):
        middle, after = layout.middle << stage, 256 << stage
        for block in range(number):
            name = f"res{stage + 2}.{block}"
            shapes[f"{name}.conv1"] = (middle, before, 1, 1)
            shapes[f"{name}.conv2"] = (middle, middle // layout.groups, 3, 3)
            shapes[f"{name}.conv3"] = (after, middle, 1, 1)
            if block == 0:
                shapes[f"{name}.shortcut"] = (after, before, 1, 1)
            before = after
    return shapes


def list_keys(layout: Layout) -> dict[str, tuple[int, ...]]:
    """{key: shape} of a checkpoint's backbone."""
    keys: dict[str, tuple[int, ...]] = {}
    for name, shape in list_convolutions(layout).items():
        keys[f"backbone.{name}.weight"] = shape
        for part in ("weight", "bias", "running_mean", "running_var"):
            keys[f"backbone.{name}.norm.{part}"] = shape[:1]
    return keys


def draw_state(layout: Layout, seed: int = 0) -> State:
    """Random weights of a scale that keeps the features within float16."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in list_convolutions(layout).items():
        channels, fan_in = shape[0], shape[1] * shape[2] * shape[3]
        weight = torch.empty(shape).uniform_(-1, 1, generator=generator) * (6 / fan_in) ** 0.5
        state[f"backbone.{name}.weight"] = weight
        # a branch adds little to what it is added to: fifty of them must not add up to infinity
        gain = 0.2 if name.endswith("conv3") else 1.0
        state[f"backbone.{name}.norm.weight"] = gain * (
            0.5 + torch.rand(channels, generator=generator)
        )
        state[f"backbone.{name}.norm.bias"] = 0.2 * torch.randn(channels, generator=generator)
        state[f"backbone.{name}.norm.running_mean"] = torch.randn(channels, generator=generator)
        state[f"backbone.{name}.norm.running_var"] = 0.5 + torch.rand(channels, generator=generator)
    state["backbone.stem.conv1.norm.running_var"] *= 1e4  # pixels are not of the scale of one
    return state


def blank_state(layout: Layout) -> State:
    """All keys with weights of the right shape, which are all the same and take no room."""
    return {key: torch.ones(1).expand(shape) for key, shape in list_keys(layout).items()}


def save_checkpoint(path: Path, state: State) -> Path:
    """Write a checkpoint as detectron2 does, with weights of a detector beside the backbone's."""
    detector = {"proposal_generator.rpn_head.conv.bias": torch.zeros(2)}
    torch.save({"model": {**state, **detector}, "iteration": 90000}, path)
    return path


def run_plainly(layout: Layout, state: State, images: torch.Tensor) -> torch.Tensor:
    """Normalised images (B, 3, H, W) to the output of res5 (B, 2048, h, w), call by call."""

    def convolve(x: torch.Tensor, name: str, stride: int = 1, groups: int = 1) -> torch.Tensor:
        weight = state[f"backbone.{name}.weight"]
        x = functional.conv2d(x, weight, None, stride, weight.shape[-1] // 2, groups=groups)
        mean, variance, gain, bias = (
            state[f"backbone.{name}.norm.{part}"]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return functional.batch_norm(x, mean, variance, gain, bias, training=False, eps=1e-5)

    x = functional.relu(convolve(images, "stem.conv1", 2))
    x = functional.max_pool2d(x, 3, 2, 1)
    for stage, number in enumerate(layout.blocks):
        for block in range(number):
            name = f"res{stage + 2}.{block}"
            stride = 2 if block == 0 and stage > 0 else 1
            first, second = (stride, 1) if layout.stride_in_1x1 else (1, stride)
            y = functional.relu(convolve(x, f"{name}.conv1", first))
            y = functional.relu(convolve(y, f"{name}.conv2", second, layout.groups))
            y = convolve(y, f"{name}.conv3")
            shortcut = convolve(x, f"{name}.shortcut", stride) if block == 0 else x
            x = functional.relu(y + shortcut)
    return x
