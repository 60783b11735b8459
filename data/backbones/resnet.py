"""The residual networks that make grid features: their layout, their pixels, their layers.

They are built from torchvision's ResNet, without its classifier, batch norms folded in.
"""

import functools
from collections import OrderedDict
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

RELEASE = "https://dl.fbaipublicfiles.com/grid-feats-vqa"
NUM_FEATURES = 2048  # of every network's last stage
MEAN_BGR = (103.530, 116.280, 123.675)
EPSILON = 1e-5  # of every batch norm, here, in detectron2 and in torchvision
STAGES = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4")
State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Architecture:
    """One network; `mean` and `std` are of pixels from 0 to 255, in the order of `channels`."""

    name: str  # as grid-feats-vqa and a store's manifest spell it
    blocks: tuple[int, int, int, int]  # of the four stages
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: str = "BGR"
    groups: int = 1
    width: int = 64  # channels of a group in the first stage's 3×3 convolutions
    stride_in_1x1: bool = False  # where a stage halves its grid: the first convolution or the 3×3
    detectron: bool = True  # its checkpoints have detectron2's keys, or else torchvision's

    @property
    def address(self) -> str:
        """Where the checkpoint of a grid-feats network is published."""
        return f"{RELEASE}/{self.name}/{self.name}.pth"


ARCHITECTURES = {
    "r50": Architecture("R-50", (3, 4, 6, 3), MEAN_BGR, (1.0, 1.0, 1.0), stride_in_1x1=True),
    "x101": Architecture(
        "X-101", (3, 4, 23, 3), MEAN_BGR, (57.375, 57.120, 58.395), groups=32, width=8
    ),
    "x152": Architecture("X-152", (3, 8, 36, 3), MEAN_BGR, (1.0, 1.0, 1.0), groups=32, width=8),
    "resnet50": Architecture(
        "resnet50",
        (3, 4, 6, 3),
        mean=(123.675, 116.280, 103.530),  # 255 times what torchvision has for pixels up to 1
        std=(58.395, 57.120, 57.375),
        channels="RGB",
        detectron=False,
    ),
}


def official_name(name: str) -> str:
    """One spelling for every network that is known here, so that its stores fit together."""
    architecture = ARCHITECTURES.get(name.lower().replace("-", ""))
    return name if architecture is None else architecture.name


@functools.cache
def import_models() -> tuple[ModuleType, Any]:
    """`torchvision.models`, and what must live as long as it does.

    A torchvision built for CUDA cannot load its operators beside a torch without, and then dies on
    two it takes for granted. The networks need none of them: declaring the two is enough.
    """
    declared = None
    try:
        from torchvision import models
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        declared = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        from torchvision import models
    return models, declared


def build_layers(architecture: Architecture) -> nn.Sequential:
    """Image (B, 3, H, W) to features (B, 2048, H/32, W/32), sides rounded up; without weights."""
    resnet = import_models()[0].resnet
    with torch.device("meta"):
        whole = resnet.ResNet(
            resnet.Bottleneck,
            list(architecture.blocks),
            groups=architecture.groups,
            width_per_group=architecture.width,
        )
    if architecture.stride_in_1x1:
        for stage in (whole.layer2, whole.layer3, whole.layer4):
            stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    return nn.Sequential(OrderedDict((name, getattr(whole, name)) for name in STAGES))


def list_shapes(layers: nn.Module) -> dict[str, tuple[int, ...]]:
    """{torchvision's name: shape} of every weight that is needed."""
    return {
        name: tuple(tensor.shape)
        for name, tensor in layers.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }


def load_weights(layers: nn.Module, state: State) -> None:
    """Set every convolution's weights, together with those of the batch norm after it.

    A frozen norm is a factor and a summand per channel: inside a convolution it costs nothing.
    """
    for name, layer in list(layers.named_modules()):
        if not isinstance(layer, nn.Conv2d):
            continue
        norm = norm_after(name)
        gain, bias, mean, variance = (
            state[f"{norm}.{part}"].double()
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        factor = gain / (variance + EPSILON).sqrt()
        weight = state[f"{name}.weight"].double() * factor[:, None, None, None]
        layer.weight = nn.Parameter(weight.float(), requires_grad=False)
        layer.bias = nn.Parameter((bias - mean * factor).float(), requires_grad=False)
        if not (layer.weight.isfinite().all() and layer.bias.isfinite().all()):
            raise ValueError(f"the weights of {name} or {norm} are NaN or infinite")
        layers.set_submodule(norm, nn.Identity())


def norm_after(convolution: str) -> str:
    """The name of the batch norm after a convolution: bn1 for conv1, downsample.1 for .0."""
    parent, _, last = convolution.rpartition(".")
    return f"{parent}.1" if last == "0" else convolution.replace("conv", "bn")
