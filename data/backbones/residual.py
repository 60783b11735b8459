"""Networks built from torchvision's ResNet, without its classifier, batch norms folded in."""

import functools
from collections import OrderedDict
from types import ModuleType
from typing import Any

import torch
from torch import nn

from data.backbones.architecture import Architecture

EPSILON = 1e-5  # of every batch norm, here, in detectron2 and in torchvision
STAGES = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4")
State = dict[str, torch.Tensor]


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
    """Give every convolution its weights, together with those of the batch norm behind it.

    A frozen norm is a factor and a summand a channel: inside a convolution it costs nothing.
    """
    for name, layer in list(layers.named_modules()):
        if not isinstance(layer, nn.Conv2d):
            continue
        norm = norm_behind(name)
        gain, bias, mean, variance = (
            state[f"{norm}.{part}"].double()
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        factor = gain / (variance + EPSILON).sqrt()
        weight = state[f"{name}.weight"].double() * factor[:, None, None, None]
        layer.weight = freeze(weight)
        layer.bias = freeze(bias - mean * factor)
        if not (layer.weight.isfinite().all() and layer.bias.isfinite().all()):
            raise ValueError(f"the weights of {name} or {norm} are NaN or infinite")
        layers.set_submodule(norm, nn.Identity())


def norm_behind(convolution: str) -> str:
    """The name of the batch norm behind a convolution: bn1 for conv1, downsample.1 for .0."""
    parent, _, last = convolution.rpartition(".")
    return f"{parent}.1" if last == "0" else convolution.replace("conv", "bn")


def freeze(tensor: torch.Tensor) -> nn.Parameter:
    """A float32 parameter that is not trained."""
    return nn.Parameter(tensor.float(), requires_grad=False)
