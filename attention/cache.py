"""Tensors that depend on shapes and options alone, made once and shared."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")

MOST_KEPT = 256  # VQA-v2 has about 30 grid shapes


def made_once(make: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
    """Remember what `make` returned for the same arguments; nobody may write to it.

    It is made outside inference mode even when first asked for inside, because a tensor made
    there could never again take part in training.
    """

    @lru_cache(MOST_KEPT)
    @wraps(make)
    def outside_inference(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Made:
        with torch.inference_mode(False), torch.no_grad():
            return make(*args, **kwargs)

    return outside_inference  # type: ignore[return-value]
