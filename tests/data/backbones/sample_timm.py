"""Small timm models with random weights, and their features as timm itself computes them."""

import functools

import numpy as np
import pytest
import torch
from PIL import Image

from data.backbones.timm_model import import_timm

# timm brings safetensors; without the extra, the files of tests that import this one are skipped
save_file = pytest.importorskip(
    "safetensors.torch", reason="no timm (make install-extras)"
).save_file
timm = import_timm("timm:")


@functools.lru_cache(maxsize=3)
def draw_state(name, seed=0, **options):
    """A model's weights, each of which matters: a new one's last layers of a block may be zero.

    Kept for the next test of the same model; nobody changes them in place.
    """
    model = timm.create_model(name, **options).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 0.5 / max(1, parameter[0].numel()) ** 0.5 if parameter.ndim > 1 else 0.1
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
            if parameter.ndim == 1:
                parameter += 0.5
    return model.state_dict()


def save_weights(path, name, **options):
    """The file of weights as the hub has it, with the classifier's."""
    state = draw_state(name, **options)
    save_file({key: value.contiguous() for key, value in state.items()}, path)
    return path


def prepare(model, image, size):
    """An image as the model takes it: resized to (width, height), by its own mean and std."""
    config = timm.data.resolve_model_data_config(model)
    method = {"bicubic": Image.BICUBIC, "bilinear": Image.BILINEAR}[config["interpolation"]]
    pixels = np.asarray(image.resize(size, method), dtype=np.float32) / 255
    normalised = (pixels - np.float32(config["mean"])) / np.float32(config["std"])
    return torch.from_numpy(normalised).permute(2, 0, 1)[None]
