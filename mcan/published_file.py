"""A file that another MCAN code saved: its state dict, for `mcan.from_published`."""

import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from mcan.checkpoint import DAMAGED, KIND


def load_published(path: str | Path) -> Mapping[str, Tensor]:
    """The state dict of a published file, read without running anything that lies in it."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except DAMAGED as error:
        code = re.search(r"GLOBAL (\S+)", str(error))
        if code is not None:
            raise ValueError(
                f"{path} would run {code[1]}; only files of numbers are read"
            ) from None
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} is not a file that torch can read ({reason[:120]})") from None
    if isinstance(content, Mapping) and content.get("kind") == KIND:
        raise ValueError(f"{path} is a checkpoint of this project already")
    state = content.get("state_dict", content) if isinstance(content, Mapping) else None
    if not isinstance(state, Mapping) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state.items()
    ):
        raise ValueError(f"{path} holds no state dict, neither as a whole nor under 'state_dict'")
    return state
