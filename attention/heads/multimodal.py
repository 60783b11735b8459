"""Multimodal continuous attention: a mixture whose size is selected at test time."""

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor

from attention.context import multimodal_attention
from attention.em import Iteration, em_iteration, weighted_em
from attention.grid import Grid
from attention.heads.continuous import ContinuousHead, Family
from attention.heads.head import AttentionOutput
from attention.heads.registry import register
from attention.initial import Init, initial_means, initial_mixture
from attention.moments import fit_gaussian
from attention.normalisers import Normaliser
from attention.options import Covariance, Floor, check_choice, check_positive, check_whole_number
from attention.seeding import restart_draw, training_draw
from attention.selection import (
    Candidates,
    Penalty,
    Selection,
    model_selection,
    penalised_complexity,
)


@register("multimodal")
class MultimodalHead(ContinuousHead):
    """A mixture of Gaussians by weighted EM: Algorithm 1.

    In training one K in 1…k_max and one set of initial means are drawn from (seed, step). At test
    time (`head.eval()`) every k is fitted from num_restarts starts, and λ chooses between them.
    Paraboloids take the place of the Gaussians after that, because one that is zero at a cell has
    no likelihood to select by. The options in `schedulable` may be set on a built head at any time.
    """

    schedulable: ClassVar[Mapping[str, type]] = {
        "lam": float,
        "train_iterations": int,
        "test_iterations": int,
    }

    def __init__(
        self,
        k_max: int = 4,
        num_restarts: int = 3,
        lam: float = 5.0,
        train_iterations: int = 5,
        test_iterations: int = 10,
        seed: int = 0,
        init: Init = "uniform",
        selection: Selection = "sample",
        penalty: Penalty = "components",
        covariance: Covariance = "full",
        floor: Floor = 1e-6,
        num_basis: int = 100,
        basis_variance: float = 0.001,
        ridge: float = 0.01,
        validate: bool = False,
        normaliser: Normaliser = "softmax",
        density: Family = "gaussian",
    ) -> None:
        super().__init__(
            covariance=covariance,
            floor=floor,
            num_basis=num_basis,
            basis_variance=basis_variance,
            ridge=ridge,
            validate=validate,
            normaliser=normaliser,
            density=density,
        )
        self.k_max = check_whole_number("k_max", k_max, 1)
        self.num_restarts = check_whole_number("num_restarts", num_restarts, 1)
        self.seed = check_whole_number("seed", seed, 0)
        self.init: Init = check_choice("init", init, get_args(Init))
        self.selection: Selection = check_choice("selection", selection, get_args(Selection))
        self.penalty: Penalty = check_choice("penalty", penalty, get_args(Penalty))
        self.lam = lam  # ≥ 0: what each component costs
        self.train_iterations = train_iterations  # of EM, through which gradients flow
        self.test_iterations = test_iterations
        self.iterate: Iteration = em_iteration  # or the same, compiled

    def __setattr__(self, name: str, value: Any) -> None:
        """Check λ and the numbers of iterations whenever they are set."""
        if name == "lam":
            value = check_positive(name, value, zero=True)
        elif name in ("train_iterations", "test_iterations"):
            value = check_whole_number(name, value, 1)
        super().__setattr__(name, value)

    def attend(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None, step: int
    ) -> AttentionOutput:
        if num_components is not None and num_components not in range(1, self.k_max + 1):
            raise ValueError(f"num_components must lie in 1…{self.k_max}, not {num_components}")
        if self.training:
            return self._attend_in_training(weights, values, grid, num_components, step)
        return self._attend_at_test_time(weights, values, grid, num_components)

    def _attend_in_training(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None, step: int
    ) -> AttentionOutput:
        drawn, uniforms = training_draw(self.seed, step, self.k_max)
        num_components = drawn if num_components is None else num_components
        if num_components == 1:  # EM with one component is the moment match
            fitted = fit_gaussian(weights, grid, self.floor, self.covariance)
        else:
            uniforms = uniforms[:, :num_components].to(weights.device, non_blocking=True)
            means = initial_means(uniforms, weights, grid, self.init)
            initial = initial_mixture(means, (num_components,))
            fitted = weighted_em(
                weights,
                grid,
                initial,
                self.train_iterations,
                self.floor,
                self.covariance,
                self.iterate,
            )
        mixture = self.as_density(fitted)
        context = multimodal_attention(mixture, values, grid, self.basis).squeeze(1)
        return AttentionOutput(context, weights, mixture)

    def _attend_at_test_time(
        self, weights: Tensor, values: Tensor, grid: Grid, num_components: int | None
    ) -> AttentionOutput:
        sizes, uniforms = restart_draw(self.seed, self.k_max, self.num_restarts, weights.device)
        complexity = penalised_complexity(self.k_max, self.penalty, self.covariance, weights.device)
        k_star, fitted, log_likelihood = model_selection(
            weights,
            grid,
            initial_means(uniforms, weights, grid, self.init),
            sizes,
            complexity,
            self.lam,
            iterations=self.test_iterations,
            floor=self.floor,
            covariance=self.covariance,
            selection=self.selection,
            iterate=self.iterate,
        )
        mixtures = self.as_density(fitted)
        context = multimodal_attention(mixtures, values, grid, self.basis)
        candidates = Candidates(log_likelihood, context, mixtures, complexity)
        chosen = k_star if num_components is None else torch.full_like(k_star, num_components)
        return AttentionOutput(
            candidates.context_of(chosen), weights, candidates.mixture_of(chosen), candidates
        )
