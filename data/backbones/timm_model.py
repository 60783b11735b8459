"""Any timm model with a grid of features as a backbone: timm:vit_small_patch14_dinov2, …

Patch tokens without class and register tokens, or the last feature map, of images that keep their
aspect; mean, std and interpolation are the model's own. timm is an extra, imported on first use.
"""

import difflib
import importlib.util
from types import ModuleType
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from data.backbones.network import Network, Own, Resize, round_side
from data.backbones.resnet import import_models, list_shapes
from data.backbones.timm_weights import fetch_model, load_file
from data.backbones.weights import Weights, hash_weights

PREFIX = "timm:"
MODELS = "https://huggingface.co/timm"
SHORT, LONG = 19, 32  # cells per side at most by default: 608 per grid, as of grid-feats-vqa's
# options that have a model take images of any size: a family knows one of them, or needs none
ANY_SIZE = {"dynamic_img_size": True, "strict_img_size": False}


class FeatureGrid(nn.Module):
    """The features of a timm model, (B, 3, H, W) → (B, F, h, w).

    `layout` is the order of the model's own axes: NLC for tokens, the first of which belong to no
    cell; NCHW or NHWC.
    """

    def __init__(self, model: nn.Module, stride: int, layout: str) -> None:
        super().__init__()
        self.model, self.stride, self.layout = model, stride, layout

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.model.forward_features(images)  # type: ignore[operator]
        if self.layout == "NCHW":
            return features
        if self.layout == "NLC":
            cells = features[:, count_prefix(self.model) :]
            features = cells.unflatten(1, (images.shape[2] // self.stride, -1))
        return features.permute(0, 3, 1, 2)


def open_timm(name: str, weights: Weights, device: torch.device, resize: Resize | Own) -> Network:
    """The model timm:<name>, with the weights of a file or, without one, of the hub.

    "own" is the resize whose grids have at most 608 cells.
    """
    timm = import_timm(name)
    plain = find_name(timm, name.removeprefix(PREFIX))
    if resize is None:
        raise ValueError(f"backbone {name} needs a resize of [short side, long side] in pixels")
    model = build_model(timm, plain)
    stride = read_stride(model)
    sides = choose_resize(name, stride, resize)
    layers, num_features = find_grid(name, model, stride, sides[1] // stride)
    if weights:
        load_file(model, name, weights)
    else:
        layers.model = fetch_model(lambda: build_model(timm, plain, pretrained=True), name)
    state = layers.model.state_dict()
    config = timm.data.resolve_model_data_config(model)
    return Network(
        name_fully(model),
        layers,
        num_features=num_features,
        stride=stride,
        mean=[255 * value for value in config["mean"]],
        std=[255 * value for value in config["std"]],
        device=device,
        resize=sides,
        weights=hash_weights({key: state[key] for key in list_shapes(layers.model)}),
        interpolation=Image.Resampling[config["interpolation"].upper()],
        whole_cells=True,
    )


def import_timm(name: str) -> ModuleType:
    """timm, after the torchvision that it imports; raise when it is not installed."""
    if importlib.util.find_spec("timm") is None:
        raise ValueError(f"backbone {name} needs timm: .venv/bin/pip install -e '.[timm]'")
    import_models()
    import timm

    return timm


def find_name(timm: ModuleType, name: str) -> str:
    """The name of a model, with or without a tag of its weights; raise when there is none."""
    architecture, _, tag = name.partition(".")
    if timm.is_model(architecture):
        known = list(timm.models.get_arch_pretrained_cfgs(architecture))
        if not tag or name in known:
            return name
        problem, near = f"timm's {architecture} has no weights tagged '{tag}'", known
    else:
        problem = f"there is no timm model '{architecture}'"
        near = difflib.get_close_matches(architecture, timm.list_models())
    named = ", ".join(f"{PREFIX}{each}" for each in near)
    raise ValueError(f"{problem}; {f'near are {named}' if near else f'see {MODELS}'}")


def name_fully(model: nn.Module) -> str:
    """The name with the tag, which says what mean, std and interpolation are."""
    config: dict[str, Any] = model.pretrained_cfg  # type: ignore[assignment]
    tag = f".{config['tag']}" if config.get("tag") else ""
    return f"{PREFIX}{config['architecture']}{tag}"


def build_model(timm: ModuleType, name: str, pretrained: bool = False) -> nn.Module:
    """The model without its classifier, for images of any size where it can be."""
    for option, value in ANY_SIZE.items():
        try:
            return timm.create_model(name, pretrained, num_classes=0, **{option: value}).eval()
        except TypeError as error:  # of the constructor, before it makes any weights
            if option not in str(error):
                raise
    return timm.create_model(name, pretrained, num_classes=0).eval()


def find_grid(name: str, model: nn.Module, stride: int, rows: int) -> tuple[FeatureGrid, int]:
    """The model's grid and its number of features per cell, found by an image of that many rows."""
    columns = 3  # as few as tell a grid from a square; a model that limits sides limits both
    try:
        with torch.inference_mode():
            image = torch.zeros(1, 3, rows * stride, columns * stride)
            features = model.forward_features(image)  # type: ignore[operator]
    except Exception as error:
        height, width = model.pretrained_cfg["input_size"][1:]  # type: ignore[index]
        reason = " ".join(str(error).split())[:80] or type(error).__name__
        raise ValueError(
            f"backbone {name} takes images of {height}×{width} pixels alone ({reason}), and images "
            "are to keep their aspect; choose one that takes any size, as of the families vit, "
            "convnext and swin"
        ) from None
    shape = tuple(features.shape) if isinstance(features, Tensor) else ()
    num_cells = count_prefix(model) + rows * columns
    match shape:
        case (1, int(), int()) if shape[1] == num_cells:
            return FeatureGrid(model, stride, "NLC"), shape[2]
        case (1, int(), int(), int()) if shape[2:] == (rows, columns):
            return FeatureGrid(model, stride, "NCHW"), shape[1]
        case (1, int(), int(), int()) if shape[1:3] == (rows, columns):
            return FeatureGrid(model, stride, "NHWC"), shape[3]
    found = "×".join(map(str, shape)) or type(features).__name__
    raise ValueError(
        f"backbone {name} has no grid of features: an image of {rows}×{columns} cells of {stride} "
        f"pixels gives {found}; choose a model with a feature map or a token per patch"
    )


def read_stride(model: nn.Module) -> int:
    """Pixels per cell of the last features, as the model names them; 32 where it names none."""
    stages = getattr(model, "feature_info", None)
    return int(stages[-1]["reduction"]) if isinstance(stages, list) and stages else 32


def count_prefix(model: nn.Module) -> int:
    """Class and register tokens, which come before those of the cells."""
    return int(getattr(model, "num_prefix_tokens", 0))


def choose_resize(name: str, stride: int, resize: tuple[int, int] | Own) -> tuple[int, int]:
    """Short and longest side in pixels, both of whole cells; "own" is 19×32 cells."""
    if resize == "own":
        return SHORT * stride, LONG * stride
    short, long = resize
    near = round_side(short, stride), round_side(long, stride)
    if resize != near:
        raise ValueError(
            f"resize is [{short},{long}], but a cell of backbone {name} has {stride} pixels: pass "
            f"multiples of it, such as resize=[{near[0]},{near[1]}]"
        )
    return near
