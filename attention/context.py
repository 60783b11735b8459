"""The context vector: the values averaged under weights on cells, or under a density."""

from torch import Tensor

from attention.basis import RadialBasis
from attention.densities.density import Density
from attention.grid import Grid

# Shape letters: B batch, R restarts, L cells, D features.


def multimodal_attention(
    mixture: Density, values_BLD: Tensor, grid: Grid, basis: RadialBasis
) -> Tensor:
    """(B, R, D): c of every restart: Algorithm 1, MultimodalAttention.

    c_k = B r_k, Eq. (3), and c = Σ_k π_k c_k, Eq. (5), without B: c = V (G Σ_k π_k r_k).
    """
    return weighted_sum(basis.cell_weights(mixture, grid), values_BLD)


def weighted_sum(weights_BRL: Tensor, values_BLD: Tensor) -> Tensor:
    """(B, R, D): c = Σ_ℓ weights_ℓ values_ℓ, in the values' dtype."""
    return weights_BRL.to(values_BLD.dtype) @ values_BLD
