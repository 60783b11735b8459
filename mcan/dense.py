"""A linear layer for many positions at once.

To answer on a CPU, it is computed as a convolution of 1×1: the same products, but by oneDNN's
kernels, where torch gives those of a linear layer to MKL's. In training, where the backward pass
gains nothing, and everywhere else it is torch's own.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

NARROW, FEW = 256, 256  # features and positions below which a convolution's preparations cost more


class Dense(nn.Linear):
    """nn.Linear, by the quicker kernels where they can be had."""

    def forward(self, x: Tensor) -> Tensor:
        """x (…, in) -> (…, out)."""
        if not self._pays(x):
            return super().forward(x)
        columns = x.reshape(1, -1, 1, self.in_features).permute(0, 3, 1, 2)  # channels last
        mapped = conv2d(columns, self.weight[:, :, None, None], self.bias)
        return mapped.permute(0, 2, 3, 1).reshape(*x.shape[:-1], self.out_features)

    def _pays(self, x: Tensor) -> bool:
        """On a CPU, without gradients, in full precision, and where the product is large."""
        plain = x.device.type == "cpu" and x.dtype == torch.float32
        large = min(self.in_features, self.out_features) >= NARROW
        if not (plain and large and x.numel() >= FEW * self.in_features):
            return False
        cast = torch.is_autocast_enabled("cpu")
        return not (cast or torch.is_grad_enabled() or torch.compiler.is_compiling())
