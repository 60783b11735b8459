"""What a model attends to and answers for a batch of questions, array by array.

Shape letters: b questions, T words, L cells, K components; L is the same for all batches.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from attention import AttentionOutput, Grid
from attention.selection import description_length
from data.batching.batch import Batch
from mcan.attention_arrays.layers import watch_layers, watch_question_pooling
from mcan.evaluation.every_k import best_answers
from mcan.evaluation.predict import answer_logits, attend, check_answers
from mcan.evaluation.trained_model import TrainedModel
from mcan.network.model import mask_words
from mcan.runtime.distributed import World

Write = Callable[[str, np.ndarray, np.ndarray], None]  # name, rows (n,), their values (n, …)


@dataclass(frozen=True)
class ArrayReader:
    """Runs a model on batches and passes on all that is kept of each."""

    trained: TrainedModel
    world: World
    dtype: torch.dtype  # that the model computes in
    num_cells: int  # L, that all arrays over cells are padded to
    num_answers: int
    layers: tuple[str, ...]  # names of mcan.attention_arrays.layers
    layer_dtype: torch.dtype

    @torch.inference_mode()
    def read(self, batch: Batch, rows: np.ndarray, write: Write) -> None:
        """Write every array of a batch whose questions are the given rows (b,) of a file.

        Those of the layers are written while the model runs, some questions at a time.
        """
        grid = Grid.of(batch.question_sizes(), device=self.world.device)
        is_word = mask_words(batch.tokens.to(self.world.device))

        def write_layer(name: str, part: slice, weights: Tensor) -> None:
            is_query = (is_word if name.startswith("encoder") else grid.mask)[part]
            weights = weights.masked_fill(~is_query[:, None, :, None], 0)
            padded = pad_layer(name, weights, self.num_cells - grid.num_cells)
            write(f"layers/{name}", rows[part], padded.to(self.layer_dtype).cpu().numpy())

        model = self.trained.model
        with (
            watch_layers(model, self.layers, write_layer, batch.image_index),
            watch_question_pooling(model) as question_weights,
        ):
            question, attended = attend(model, batch, self.world, self.dtype)
        best = answer_logits(model, question, attended.context).topk(self.num_answers)
        arrays = {
            "question_weights": question_weights[0],
            "image_weights": pad(attended.weights, (0, self.num_cells - grid.num_cells)),
            "answers": best.indices,
            "probabilities": best.values.sigmoid(),
            **describe_mixture(attended),
            **describe_candidates(self.trained, question, attended),
        }
        check_answers(batch.question_ids, arrays["probabilities"].cpu())
        for name, array in arrays.items():
            write(name, rows, array.cpu().numpy())


def pad_layer(name: str, weights: Tensor, num_more: int) -> Tensor:
    """The weights (b, heads, M, N) of a layer, with `num_more` cells of weight 0 added."""
    if name.startswith("encoder"):
        return weights
    return pad(weights, (0, num_more if name.endswith(".self_attention") else 0, 0, num_more))


def describe_mixture(attended: AttentionOutput) -> dict[str, Tensor]:
    """The density of continuous attention, with K* components in use; nothing for discrete."""
    mixture = attended.mixture
    if mixture is None:
        return {}
    return {
        "mixture/num_components": mixture.num_components[:, 0],  # (b,)
        "mixture/pi": mixture.pi[:, 0],  # (b, K)
        "mixture/mu": mixture.mu[:, 0],  # (b, K, 2)
        "mixture/sigma": mixture.sigma[:, 0],  # (b, K, 2, 2)
    }


def describe_candidates(
    trained: TrainedModel, question: Tensor, attended: AttentionOutput
) -> dict[str, Tensor]:
    """The mixture of every size k that K* was selected from, and the answer with each."""
    candidates, lam = attended.candidates, trained.lam
    if candidates is None:
        return {}
    likelihood, mixture = candidates.log_likelihood, candidates.mixture
    answers, probabilities = best_answers(trained.model, question, candidates)
    arrays = {
        "candidates/log_likelihood": likelihood,  # (b, k_max)
        "candidates/pi": mixture.pi,  # (b, k_max, K)
        "candidates/mu": mixture.mu,  # (b, k_max, K, 2)
        "candidates/sigma": mixture.sigma,  # (b, k_max, K, 2, 2)
        "candidates/answers": answers,  # (b, k_max)
        "candidates/probabilities": probabilities,
    }
    if lam is not None:
        length = description_length(likelihood, candidates.complexity, lam)
        arrays["candidates/description_length"] = length
    return arrays
