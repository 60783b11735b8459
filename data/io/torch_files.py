"""What torch.save wrote, read back without running any code that is in it."""

import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import torch


def read_saved(path: Path, what: str) -> Any:
    """The content of a file, tensors mapped where that can be; an absent file raises as it does."""
    load = partial(torch.load, path, map_location="cpu", weights_only=True)
    try:
        try:
            return load(mmap=True)
        except RuntimeError:
            if zipfile.is_zipfile(path):
                raise
            return load()  # written before torch 1.6, which cannot be mapped
    except FileNotFoundError:
        raise
    except Exception as error:  # torch.load raises whatever a damaged pickle leads to
        reason = f"{type(error).__name__}: {error}".split("\n")[0][:120]
        raise ValueError(
            f"{path} cannot be read as {what} ({reason}): it is damaged, or torch.save did not "
            "write it; copy or download it again"
        ) from None
