"""How many components: a description length that charges each one λ (Section 5 of the paper)."""

from typing import Literal

import torch
from torch import Tensor

from attention.options import Covariance, finite_and_positive

# Shape letters: B batch, K the sizes 1…k_max.

TIE = 1e-9  # rounding must not decide between sizes that fit equally well
Penalty = Literal["components", "parameters"]


def description_length(log_likelihood: Tensor, complexity: Tensor, lam: float) -> Tensor:
    """C(Θ̂_k, k) = −2 log p(X | Θ̂_k) + λk, Eqs. (13)–(15)."""
    return -2 * log_likelihood + lam * complexity


def select_components(log_likelihood_BK: Tensor, complexity_K: Tensor, lam: float) -> Tensor:
    """(B,) int64: k* = argmin_k C(Θ̂_k, k), Eq. (12); ties go to the smaller k."""
    finite_and_positive("lam", lam, zero=True)
    cost_BK = description_length(log_likelihood_BK, complexity_K, lam)
    is_least = cost_BK <= cost_BK.amin(1, keepdim=True) + TIE
    return is_least.to(torch.uint8).argmax(1) + 1  # argmax gives the first of equals


def penalised_complexity(
    k_max: int, penalty: Penalty, covariance: Covariance, device: torch.device
) -> Tensor:
    """(k_max,): k itself, or the free parameters of k Gaussians: 6k − 1, spherical 4k − 1."""
    k = torch.arange(1, k_max + 1, dtype=torch.float64, device=device)
    if penalty == "components":
        return k
    return 6 * k - 1 if covariance == "full" else 4 * k - 1
