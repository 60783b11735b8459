"""Tensors that depend on shapes and options alone, computed once and shared."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MAX_CACHED = 256  # VQA-v2 has about 30 grid shapes


def cached(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Remember what a function returned for the same arguments; nobody may write to it.

    It runs outside inference mode even when first called inside, because a tensor made there
    could never again take part in training.
    """

    @lru_cache(MAX_CACHED)
    @wraps(function)
    def outside_inference(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with torch.inference_mode(False), torch.no_grad():
            return function(*args, **kwargs)

    return outside_inference  # type: ignore[return-value]
