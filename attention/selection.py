"""How many components: a description length that charges each one λ (Section 5 of the paper)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from attention.cache import cached
from attention.densities.mixture import Mixture
from attention.em import Iteration, em_iteration, weighted_em, weighted_log_likelihood
from attention.grid import Grid
from attention.initial import initial_mixture
from attention.options import Covariance, Floor, check_positive

# Shape letters: B batch, R restarts, K components or sizes 1…k_max, L cells.

TIE = 1e-9  # rounding must not decide between sizes that fit equally well
Penalty = Literal["components", "parameters"]
Selection = Literal["sample", "batch"]


@dataclass(frozen=True)
class Candidates:
    """The likeliest mixture of every size k = 1…k_max: one can choose again without another pass.

    log_likelihood (B, k_max); context (B, k_max, D); mixture: its restart axis is k, padded to
    k_max components; complexity (k_max,): what λ multiplies for each k.
    """

    log_likelihood: Tensor
    context: Tensor
    mixture: Mixture
    complexity: Tensor

    def select(self, lam: float, k_max: int | None = None) -> Tensor:
        """(B,) int64: the number of components K* under another λ or a smaller k_max."""
        fitted = self.log_likelihood.shape[1]
        limit = fitted if k_max is None else k_max
        if not 1 <= limit <= fitted:
            raise ValueError(
                f"k_max must lie in 1…{fitted}, the sizes that were fitted, not {k_max}"
            )
        return select_components(self.log_likelihood[:, :limit], self.complexity[:limit], lam)

    def context_of(self, num_components: Tensor) -> Tensor:
        """(B, D): each image's context with the given number of components (B,)."""
        index = (num_components - 1)[:, None, None].expand(-1, 1, self.context.shape[-1])
        return self.context.gather(1, index).squeeze(1)

    def mixture_of(self, num_components: Tensor) -> Mixture:
        """Each image's mixture with the given number of components (B,); R = 1."""
        return self.mixture.restarts(num_components[:, None] - 1)


def model_selection(
    weights_BL: Tensor,
    grid: Grid,
    means_BRK2: Tensor,
    sizes: tuple[int, ...],
    complexity_K: Tensor,
    lam: float,
    *,
    iterations: int,
    floor: Floor = 1e-6,
    covariance: Covariance = "full",
    selection: Selection = "sample",
    iterate: Iteration = em_iteration,
) -> tuple[Tensor, Mixture, Tensor]:
    """k* (B,), Θ̂_k for k = 1…k_max and their likelihood (B, k_max): Algorithm 1, ModelSelection.

    EM runs from all starts as one batch: initial means, and the size of each, how many it uses.
    Θ̂_k is the likeliest fit of its size; the restart axis of the mixture returned is k.
    """
    initial = initial_mixture(means_BRK2, sizes)
    fitted = weighted_em(weights_BL, grid, initial, iterations, floor, covariance, iterate)
    likelihood_weights_BL = weights_BL if selection == "sample" else batch_weights(weights_BL, grid)
    likelihood_BR = weighted_log_likelihood(fitted, likelihood_weights_BL, grid)  # Eq. (7)
    best_BK = best_restart_of_each_size(likelihood_BR, sizes, len(complexity_K))
    likelihood_BK = likelihood_BR.gather(1, best_BK)
    k_star_B = select_components(likelihood_BK, complexity_K, lam)  # Eqs. (12)–(15)
    return k_star_B, fitted.restarts(best_BK), likelihood_BK


def best_restart_of_each_size(likelihood_BR: Tensor, sizes: tuple[int, ...], k_max: int) -> Tensor:
    """(B, k_max): which restart has the highest likelihood among those with k components."""
    is_other_KR = _is_of_another_size(sizes, k_max, likelihood_BR.device)
    return likelihood_BR[:, None].masked_fill(is_other_KR, -torch.inf).argmax(2)


@cached
def _is_of_another_size(sizes: tuple[int, ...], k_max: int, device: torch.device) -> Tensor:
    is_other_KR = [[size != k for size in sizes] for k in range(1, k_max + 1)]
    return torch.tensor(is_other_KR, device=device)


def batch_weights(weights_BL: Tensor, grid: Grid) -> Tensor:
    """(B, L): the whole batch's weights summed, by which the published code judges each sample.

    A choice then depends on the batch that its sample happens to be in.
    """
    return weights_BL.sum(0) * grid.mask


def select_components(log_likelihood_BK: Tensor, complexity_K: Tensor, lam: float) -> Tensor:
    """(B,) int64: k* = argmin_k C(Θ̂_k, k), Eq. (12); ties go to the smaller k."""
    check_positive("lam", lam, zero=True)
    cost_BK = description_length(log_likelihood_BK, complexity_K, lam)
    is_least = cost_BK <= cost_BK.amin(1, keepdim=True) + TIE
    return is_least.to(torch.uint8).argmax(1) + 1  # argmax gives the first of equals


def description_length(log_likelihood: Tensor, complexity: Tensor, lam: float) -> Tensor:
    """C(Θ̂_k, k) = −2 log p(X | Θ̂_k) + P(k) with P(k) = λk, Eqs. (13)–(15).

    The complexity is k itself, unless `penalised_complexity` counts parameters.
    """
    return -2 * log_likelihood + lam * complexity


@cached
def penalised_complexity(
    k_max: int, penalty: Penalty, covariance: Covariance, device: torch.device
) -> Tensor:
    """(k_max,): k itself, or the free parameters of k Gaussians: 6k − 1, spherical 4k − 1."""
    k = torch.arange(1, k_max + 1, dtype=torch.float64, device=device)
    if penalty == "components":
        return k
    return 6 * k - 1 if covariance == "full" else 4 * k - 1
