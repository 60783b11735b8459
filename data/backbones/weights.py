"""Checkpoints of the networks: detectron2's keys or torchvision's, each accounted for."""

import functools
import hashlib
import re
from pathlib import Path

import torch

from data.backbones.resnet import (
    ARCHITECTURES,
    Architecture,
    State,
    build_layers,
    import_models,
    list_shapes,
)
from data.io.download import download
from data.io.torch_files import read_saved

Shapes = dict[str, tuple[int, ...]]
Weights = str | Path | None
PREFIX = "backbone."  # what else a detectron2 checkpoint holds belongs to the detector


def read_weights(architecture: Architecture, path: Path, shapes: Shapes) -> State:
    """The weights of a checkpoint under torchvision's names; raise on one too many or too few."""
    try:
        content = read_saved(path, "a checkpoint")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} does not exist; expected {describe_checkpoint(architecture)}"
        ) from None
    found = select_keys(architecture, content)
    if any("conv2_offset" in key for key in found):
        raise ValueError(
            f"{path} has deformable convolutions, as X-152++ does, and these are not supported; "
            f"expected {describe_checkpoint(architecture)}"
        )
    names = {file_key(architecture, name): name for name in shapes}
    wanted = {key: shapes[name] for key, name in names.items()}
    if set(found) != set(wanted):
        problem = f"{describe_keys(found, wanted)}; {suggest(architecture, content)}"
    else:
        problem = describe_shapes(found, wanted)
    if problem:
        raise ValueError(f"{path} is not a checkpoint of {architecture.name}: {problem}")
    return {name: found[key] for key, name in names.items()}


def describe_keys(found: State, wanted: Shapes) -> str:
    """How many keys a checkpoint lacks and has too many, with an example of each."""
    missing, extra = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    return ", and ".join(
        f"{len(keys)} {'key is' if len(keys) == 1 else 'keys are'} {what}, such as {keys[0]}"
        for keys, what in ((missing, "missing"), (extra, "too many"))
        if keys
    )


def describe_shapes(found: State, wanted: Shapes) -> str:
    """The first tensor of another shape or type than is wanted; empty when there is none."""
    for key, shape in wanted.items():
        if tuple(found[key].shape) != shape or not found[key].is_floating_point():
            return (
                f"{key} has the shape {list(found[key].shape)} and type {found[key].dtype}, "
                f"expected {list(shape)} of floating-point numbers"
            )
    return ""


def select_keys(architecture: Architecture, content: object) -> State:
    """The tensors of a checkpoint that belong to the network, under the file's own keys."""
    inner = content.get("model", content) if isinstance(content, dict) else {}
    tensors = inner.items() if isinstance(inner, dict) else ()
    kept = {str(key): value for key, value in tensors if isinstance(value, torch.Tensor)}
    if architecture.detectron:
        return {key: value for key, value in kept.items() if key.startswith(PREFIX)}
    unused = re.compile(r"fc\.(weight|bias)|.*\.num_batches_tracked")
    return {key: value for key, value in kept.items() if not unused.fullmatch(key)}


def file_key(architecture: Architecture, name: str) -> str:
    """The key of what torchvision calls `name`: layer1.0.bn2.bias is res2.0.conv2.norm.bias."""
    if not architecture.detectron:
        return name
    name = re.sub(r"layer(\d)", lambda match: f"res{int(match[1]) + 1}", name)
    name = re.sub(r"bn(\d)", r"conv\1.norm", name)
    name = name.replace("downsample.0", "shortcut").replace("downsample.1", "shortcut.norm")
    return f"{PREFIX}{'' if name.startswith('res') else 'stem.'}{name}"


@functools.cache
def list_keys(architecture: Architecture) -> frozenset[str]:
    """Every key that a checkpoint of a network has."""
    shapes = list_shapes(build_layers(architecture))
    return frozenset(file_key(architecture, name) for name in shapes)


def suggest(architecture: Architecture, content: object) -> str:
    """Which network a checkpoint fits, or where the right one is to be had."""
    for name, other in ARCHITECTURES.items():
        if set(select_keys(other, content)) == list_keys(other):
            return f"backbone={name} has its keys"
    return f"expected {describe_checkpoint(architecture)}"


def describe_checkpoint(architecture: Architecture) -> str:
    """What a network's checkpoint is, in words."""
    if architecture.detectron:
        return f"grid-feats-vqa's checkpoint of {architecture.name}, {architecture.address}"
    return f"torchvision's weights of {architecture.name}"


def fetch_weights(folder: Path | None = None) -> Path:
    """torchvision's default weights of resnet50, downloaded to torch's own cache on first use."""
    url: str = import_models()[0].ResNet50_Weights.DEFAULT.url
    folder = Path(torch.hub.get_dir()) / "checkpoints" if folder is None else folder
    path = folder / url.rsplit("/", 1)[-1]
    if not path.is_file():
        try:
            download(url, path, num_retries=1)
        except OSError as error:
            raise OSError(
                f"torchvision's weights of resnet50 are not here, and {error}; without a network, "
                "bring that file from another machine and pass weights=<file>"
            ) from None
    return path


def hash_weights(state: State) -> str:
    """A short hash of all weights, the same for equal ones."""
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode())
        digest.update(state[name].float().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]
