"""What trained models saw and answered, question by question, as plain values to be drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from omegaconf import DictConfig
from torch import Tensor

from attention import AttentionOutput, Grid, Mixture
from attention.selection import description_length
from data.batch import Batch
from data.examples import build_examples
from data.questions import Questions
from data.store_set import StoreSet
from figures.gaussians import Gaussians
from mcan.attention_maps import spread_over_cells
from mcan.precision import choose_dtype
from mcan.prediction import give_logits, look
from mcan.processes import World
from scripts.dataset import Split
from scripts.trained import Trained
from scripts.validation import iterate_split


@dataclass(frozen=True)
class Guess:
    """The likeliest answer and its probability."""

    answer: str
    probability: float


@dataclass(frozen=True)
class Candidate:
    """A mixture that was fitted, what it would answer, and what decides whether it is chosen."""

    mixture: Gaussians
    guess: Guess
    log_likelihood: float
    description_length: float  # C(k), the least of which is chosen


@dataclass(frozen=True)
class Look:
    """One model's look at one question."""

    question_id: int
    guess: Guess
    cells: np.ndarray  # (h, w) float64, sum 1: the weights, or the density's mass in each cell
    mixture: Gaussians | None  # None for discrete attention
    candidates: tuple[Candidate, ...] = ()  # of k = 1, 2, …, where the head chooses between them

    @property
    def num_components(self) -> int:
        """K*, or 0 for discrete attention."""
        return 0 if self.mixture is None else len(self.mixture.pi)


def look_through(
    trained: Trained, questions: Questions, stores: StoreSet, world: World, runtime: DictConfig
) -> list[Look]:
    """A model's looks at questions, in their order."""
    examples = build_examples(questions, None, trained.words.vocabulary, trained.words.answers)
    pin = world.device.type == "cuda"
    loader = Split(examples, stores).loader(trained.words, runtime, pin, share_images=True)
    batches = iterate_split(
        loader, runtime.evaluation_batch_size, runtime.mixing, world, runtime.show_progress
    )
    dtype = choose_dtype(runtime.precision, world.device)
    found = {each.question_id: each for each in collect_looks(trained, batches, world, dtype)}
    return [found[number] for number in questions.ids.tolist()]


@torch.inference_mode()
def collect_looks(
    trained: Trained, batches: Iterable[Batch], world: World, dtype: torch.dtype
) -> list[Look]:
    """Answer batches with the test-time head and keep all that it saw."""
    looks = []
    for batch in batches:
        question, attended = look(trained.model, batch, world, dtype)
        sizes = batch.question_sizes()
        cells = spread_over_cells(attended, Grid.of(sizes, device=world.device)).cpu().numpy()
        guesses = guess(trained, question, attended.context)
        candidates = list_candidates(trained, question, attended)
        mixture = fetch(attended.mixture)
        for row, (number, (height, width)) in enumerate(
            zip(batch.question_ids.tolist(), sizes, strict=True)
        ):
            looks.append(
                Look(
                    number,
                    guesses[row],
                    cells[row, : height * width].reshape(height, width).copy(),
                    None if mixture is None else take_mixture(mixture, row, 0),
                    tuple(rivals[row] for rivals in candidates),
                )
            )
    return looks


def guess(trained: Trained, question: Tensor, context: Tensor) -> list[Guess]:
    """The best answer to each question (b, output) with an image context (b, H)."""
    best = give_logits(trained.model, question, context.contiguous()).max(1)
    words = trained.words.answers.words
    return [
        Guess(words[number], probability)
        for number, probability in zip(
            best.indices.tolist(), best.values.sigmoid().tolist(), strict=True
        )
    ]


def list_candidates(
    trained: Trained, question: Tensor, attended: AttentionOutput
) -> list[list[Candidate]]:
    """For every k, the candidate of each question; empty where the head does not choose."""
    candidates = attended.candidates
    lam = getattr(trained.model.pool_image.head, "lam", None)
    if candidates is None or lam is None:
        return []
    likelihoods = candidates.log_likelihood.tolist()
    lengths = description_length(candidates.log_likelihood, candidates.complexity, lam).tolist()
    mixture = fetch(candidates.mixture)
    assert mixture is not None
    return [
        [
            Candidate(take_mixture(mixture, row, k), guessed, likelihoods[row][k], lengths[row][k])
            for row, guessed in enumerate(guess(trained, question, candidates.context[:, k]))
        ]
        for k in range(candidates.context.shape[1])
    ]


def fetch(mixture: Mixture | None) -> Mixture | None:
    """The same mixtures where NumPy can read them."""
    if mixture is None:
        return None
    return Mixture(
        mixture.pi.cpu(), mixture.mu.cpu(), mixture.sigma.cpu(), mixture.num_components.cpu()
    )


def take_mixture(mixture: Mixture, row: int, restart: int) -> Gaussians:
    """The components in use of one image's mixture."""
    used = int(mixture.num_components[row, restart])
    return Gaussians(
        mixture.pi[row, restart, :used].numpy(),
        mixture.mu[row, restart, :used].numpy(),
        mixture.sigma[row, restart, :used].numpy(),
    )


def name_heads(models: Sequence[Trained], names: Sequence[str]) -> list[str]:
    """What each model is called in a figure: its head's name, or its own where heads repeat."""
    heads = [str(model.options["name"]) for model in models]
    return heads if len(set(heads)) == len(heads) else list(names)
