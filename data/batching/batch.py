"""One batch of questions with their features, and the reused buffer that the features lie in."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from data.features.dtype import StorageDtype


class FeatureBuffer:
    """One buffer of the loader's ring."""

    def __init__(self, dtype: StorageDtype, pin: bool) -> None:
        self.dtype, self.pin = dtype, pin
        self.buffer = torch.empty(0, dtype=dtype.torch_dtype)
        self.wait: Callable[[], object] | None = None

    def reserve(self, count: int) -> None:
        """Make room for `count` numbers; what is there already is kept."""
        if self.buffer.numel() >= count:
            return
        if self.pin:
            self.buffer = torch.empty(count, dtype=self.dtype.torch_dtype, pin_memory=True)
        else:  # numpy asks for huge pages, torch does not: copies into them are quicker
            self.buffer = self.dtype.to_tensor(np.empty(count, dtype=self.dtype.array_dtype))

    def take(self, num_images: int, length: int, num_features: int) -> Tensor:
        """A tensor (images, L, F) over the buffer, once its last user is done with it."""
        if self.wait is not None:
            self.wait()
            self.wait = None
        count = num_images * length * num_features
        return self.buffer[:count].view(num_images, length, num_features)


@dataclass(frozen=True)
class Batch:
    """What the network sees at a time: i images, b questions about them.

    With `image_index` None, question n is about image n. Features lie in a buffer that is reused:
    they are valid until `keep` more batches were drawn from the loader. `copy_ahead` moves
    features, tokens and targets to a GPU.
    """

    features: Tensor  # (i, L, F) of the store's dtype; rows past a grid's cells are zero
    sizes: tuple[tuple[int, int], ...]  # (height, width) of each image's grid
    image_index: Tensor | None  # (b,) int64 on the CPU, which image each question is about
    tokens: Tensor  # (b, T) int64
    targets: Tensor | None  # (b, A) float32
    question_ids: Tensor  # (b,) int64
    image_ids: Tensor  # (b,) int64
    weight: float  # factor of each question's loss, see MicroBatch
    buffer: FeatureBuffer | None = field(default=None, repr=False, compare=False)  # to be reused
    device_index: Tensor | None = None  # image_index again, where the features are

    def question_sizes(self) -> tuple[tuple[int, int], ...]:
        """The (height, width) of each question's grid."""
        if self.image_index is None:
            return self.sizes
        return tuple(self.sizes[n] for n in self.image_index.tolist())

    def keep_until(self, wait: Callable[[], object]) -> None:
        """Call `wait` before the buffer is overwritten, as with a CUDA event's `synchronize`."""
        if self.buffer is not None:
            self.buffer.wait = wait
