"""The best mixture of every size, fitted in one batch: what selection chooses from."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from attention.em import initialise, judge, maximise_together
from attention.grid import Grid
from attention.initial import Init, initial_means, restart_uniforms
from attention.mixture import Mixture, concatenate
from attention.moments import as_mixture, moment_match
from attention.options import Covariance, Floor
from attention.selection import select_components

# Shape letters: B batch, R restarts, K components, L cells, D features.

Selection = Literal["sample", "batch"]


@dataclass(frozen=True)
class Candidates:
    """The best mixture of every size k = 1…k_max, so that a caller can choose again without a pass.

    log_likelihood (B, k_max); context (B, k_max, D); mixture: its restart axis is k, padded to
    k_max components; complexity (k_max,): what λ multiplies for each k.
    """

    log_likelihood: Tensor
    context: Tensor
    mixture: Mixture
    complexity: Tensor

    def select(self, lam: float, k_max: int | None = None) -> Tensor:
        """(B,) int64: the number of components K* under another λ or a smaller k_max, Eq. (12)."""
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


def fit_candidates(
    weights_BL: Tensor,
    grid: Grid,
    *,
    k_max: int,
    num_restarts: int,
    iterations: int,
    seed: int,
    init: Init = "uniform",
    floor: Floor = 1e-6,
    covariance: Covariance = "full",
    selection: Selection = "sample",
) -> tuple[Mixture, Tensor]:
    """The likeliest restart for each k ≤ k_max: a mixture whose restart axis is k, and (B, k_max).

    k = 1 is the moment match. All restarts of all other k run as one batch.
    """
    judged_BL = weights_to_judge_by(weights_BL, grid, selection)
    single = moment_match(weights_BL, grid, floor, covariance)
    likelihood_B1 = judge(single, judged_BL, grid)
    if k_max == 1:
        return single, likelihood_B1

    uniforms_RK2 = restart_uniforms(seed, k_max, num_restarts, weights_BL.device)
    means_BRK2 = initial_means(uniforms_RK2, weights_BL, grid, init)
    starts = [
        initialise(means_of_k[:, :, :k])
        for k, means_of_k in enumerate(means_BRK2.chunk(k_max - 1, dim=1), 2)
    ]
    fitted = maximise_together(weights_BL, grid, starts, iterations, floor, covariance)
    chosen, likelihoods = [single.padded(k_max)], [likelihood_B1]
    for pi_BRK, location_BRK5 in fitted:
        mixture = as_mixture(pi_BRK, location_BRK5)
        likelihood_BR = judge(mixture, judged_BL, grid)
        best_B1 = likelihood_BR.argmax(1, keepdim=True)
        chosen.append(mixture.restarts(best_B1).padded(k_max))
        likelihoods.append(likelihood_BR.gather(1, best_B1))
    return concatenate(*chosen), torch.cat(likelihoods, 1)


def weights_to_judge_by(weights_BL: Tensor, grid: Grid, selection: Selection) -> Tensor:
    """(B, L): a sample's own weights, or the whole batch's summed, as the published code has it.

    With the latter a choice depends on the batch that its sample happens to be in.
    """
    return weights_BL if selection == "sample" else weights_BL.sum(0) * grid.mask
