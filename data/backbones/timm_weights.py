"""Weights of timm's models: from a file, each accounted for, or from the hub."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from data.backbones.resnet import State, list_shapes
from data.backbones.weights import Shapes, describe_keys, describe_shapes
from data.io.torch_files import read_saved

# under what key training scripts save the weights; averaged ones come first, as in timm
WRAPPERS = ("state_dict_ema", "model_ema", "state_dict", "model")


def load_file(model: nn.Module, name: str, weights: str | Path) -> None:
    """Load the weights of a file, in timm's keys or in those that timm converts; raise on others.

    The classifier's are left out; apart from them none may be missing or too many.
    """
    path = Path(weights)
    wanted = list_shapes(model)
    found = convert_keys(model, read_file(path, name), wanted)
    problem = describe_keys(found, wanted) or describe_shapes(found, wanted)
    if problem:
        raise ValueError(f"{path} is not a checkpoint of {name}: {problem}")
    broken = [key for key, tensor in found.items() if not tensor.isfinite().all()]
    if broken:
        raise ValueError(f"{path}: {broken[0]} is NaN or infinite; copy or download it again")
    model.load_state_dict(found, strict=False)  # the batches that a norm has seen are not needed


def read_file(path: Path, name: str) -> dict[str, Any]:
    """The content of a .safetensors file, or of what torch.save wrote, without running its code."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; expected a checkpoint of {name}")
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file as load_safetensors

        try:
            return load_safetensors(path)
        except (OSError, SafetensorError) as error:
            raise ValueError(
                f"{path} cannot be read as a checkpoint ({error}): it is damaged; copy or download "
                "it again"
            ) from None
    content = read_saved(path, "a checkpoint")
    content = content if isinstance(content, dict) else {}
    return next((content[key] for key in WRAPPERS if isinstance(content.get(key), dict)), content)


def convert_keys(model: nn.Module, content: dict[str, Any], wanted: Shapes) -> State:
    """The tensors of a checkpoint under timm's keys, without the classifier's."""
    from timm.models import clean_state_dict

    tensors = clean_state_dict({str(key): value for key, value in content.items()})
    found = select_tensors(model, tensors)
    # timm's own conversion of what others published: DINOv2, CLIP, …
    convert = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    if convert is not None and set(found) != set(wanted):
        with contextlib.suppress(Exception):  # whatever the weights of another model lead to
            return select_tensors(model, convert(tensors, model))
    return found


def select_tensors(model: nn.Module, content: dict[str, Any]) -> State:
    """What is a tensor and needed for features."""
    config: dict[str, Any] = model.pretrained_cfg  # type: ignore[assignment]
    classifiers = config.get("classifier") or ()
    classifiers = (classifiers,) if isinstance(classifiers, str) else classifiers
    unused = {f"{each}.{part}" for each in classifiers for part in ("weight", "bias")}
    return {
        key: value
        for key, value in content.items()
        if isinstance(value, torch.Tensor)
        and key not in unused
        and not key.endswith("num_batches_tracked")
    }


def fetch_model(build: Callable[[], nn.Module], name: str) -> nn.Module:
    """A model with the weights that timm names, from the hub or its cache."""
    try:
        return build()
    except Exception as error:  # of the hub's, of the network's, or of timm where there are none
        cause: BaseException = error
        while cause.__cause__ or cause.__context__:
            cause = cause.__cause__ or cause.__context__ or cause
        reason = " ".join(str(cause).split())[:160]
        raise OSError(
            f"the weights of {name} are not here and could not be downloaded ({reason}); without a "
            "network, bring that file from another machine and pass weights=<file>"
        ) from None
