"""One picture and one question: what a model saw, and what it answers under any K and λ."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from omegaconf import DictConfig
from PIL import Image
from torch import Tensor

from attention import AttentionOutput, Grid
from attention.selection import description_length
from data.backbones import Backbone, open_backbone
from data.half import to_half
from data.patch import flatten
from data.tokenizer import tokenize
from figures.gaussians import Gaussians
from mcan.precision import autocast_to, choose_dtype
from mcan.prediction import give_logits
from scripts.looks import Guess, fetch, take_mixture
from scripts.trained import Trained

NUM_SHOWN = 5  # answers
LENGTH = 14  # words of a question that a model reads
LARGEST = 1000  # pixels a side of the photo to draw on


@dataclass(frozen=True)
class View:
    """The answers under one choice of K or λ, and the attention they rest on."""

    answers: tuple[Guess, ...]  # the likeliest first
    cells: np.ndarray  # (h, w): the weights of discrete attention
    mixture: Gaussians | None  # None for discrete attention
    lam: float | None  # None where the head has none
    is_fixed: bool  # K was given, not chosen by λ
    lengths: tuple[float, ...]  # C(1), C(2), …, the least of which λ chooses

    @property
    def num_components(self) -> int:
        """K, or 0 for discrete attention."""
        return 0 if self.mixture is None else len(self.mixture.pi)


@dataclass(frozen=True)
class Seen:
    """All that one pass of the network leaves: another K or λ needs no other pass."""

    trained: Trained
    photo: np.ndarray  # (H, W, 3) uint8, upright
    question: str
    notices: tuple[str, ...]  # what a reader must know about the question
    pooled: Tensor  # (1, output): the question
    attended: AttentionOutput  # of one image
    size: tuple[int, int]  # rows and columns of cells

    @cached_property
    def lam(self) -> float | None:
        """The head's own λ; None where there is nothing to choose."""
        lam = getattr(self.trained.model.pool_image.head, "lam", None)
        return None if self.attended.candidates is None else lam

    @property
    def k_max(self) -> int:
        """The most components there are to choose from; 0 where there is no choice."""
        candidates = self.attended.candidates
        return 0 if candidates is None or self.lam is None else candidates.context.shape[1]

    @torch.inference_mode()
    def choose(self, lam: float | None = None, num_components: int | None = None) -> View:
        """Answer with the K of another λ, or with a K that is given; None is as trained."""
        attended, candidates = self.attended, self.attended.candidates
        lam = self.lam if lam is None else lam
        context, mixture, lengths = attended.context, attended.mixture, ()
        if candidates is not None and lam is not None:
            chosen = candidates.select(lam)
            if num_components is not None:
                chosen = torch.full_like(chosen, num_components)
            context, mixture = candidates.context_of(chosen), candidates.mixture_of(chosen)
            lengths = tuple(
                description_length(candidates.log_likelihood, candidates.complexity, lam)[
                    0
                ].tolist()
            )
        found = fetch(mixture)
        return View(
            rank_answers(self.trained, self.pooled, context),
            attended.weights[0].double().cpu().numpy().reshape(self.size),
            None if found is None else take_mixture(found, 0, 0),
            lam,
            num_components is not None,
            lengths,
        )


@dataclass(frozen=True)
class Asker:
    """A model, and the backbone that describes pictures as those it was trained on."""

    trained: Trained
    backbone: Backbone
    dtype: torch.dtype

    @torch.inference_mode()
    def ask(self, picture: Image.Image, question: str) -> Seen:
        """Run the network once on a picture of any mode and size."""
        notices = read_question(self.trained, question)
        device = next(self.trained.model.parameters()).device
        described = self.backbone.describe(picture)  # (h, w, F)
        height, width, num_features = described.shape
        # a model knows its features as a store keeps them
        rows = torch.from_numpy(to_half(0, described.reshape(-1, num_features)))
        tokens = torch.tensor([self.trained.words.vocabulary.encode(question, LENGTH)])
        grid = Grid.of([(height, width)], device=device)
        with autocast_to(self.dtype, device):
            pooled, attended = self.trained.model.look(
                rows[None].to(device), grid, tokens.to(device)
            )
        photo = flatten(picture)
        photo.thumbnail((LARGEST, LARGEST), Image.Resampling.LANCZOS)
        return Seen(
            self.trained,
            np.asarray(photo),
            " ".join(question.split()),
            notices,
            pooled,
            attended,
            (height, width),
        )


def open_asker(trained: Trained, weights: str | None, runtime: DictConfig) -> Asker:
    """The model with its backbone; raise when its features cannot be computed here."""
    device = next(trained.model.parameters()).device
    backbone = open_own_backbone(trained, weights, device)
    num_features = trained.model.sizes.num_features
    if backbone.num_features != num_features:
        raise ValueError(
            f"{trained.path} was trained on {num_features} features a cell, but backbone "
            f"{backbone.name} now makes {backbone.num_features}; train again on features of today"
        )
    _, _, made_with = trained.manifest.source.rpartition(", weights ")
    if backbone.weights and made_with not in ("", trained.manifest.source, backbone.weights):
        raise ValueError(
            f"{trained.path} was trained on features of other {backbone.name} weights (fingerprint "
            f"{made_with}) than {weights or 'the default'} ({backbone.weights}); pass those: "
            f"weights=…"
        )
    return Asker(trained, backbone, choose_dtype(runtime.precision, device))


def open_own_backbone(trained: Trained, weights: str | None, device: torch.device) -> Backbone:
    """The backbone that a checkpoint's manifest names, as it was used then."""
    name, resize = trained.manifest.backbone, trained.manifest.resize
    try:
        return open_backbone(name, weights or None, device, resize)
    except ValueError as error:
        raise ValueError(
            f"{trained.path} was trained on features of backbone '{name}', and {error}"
        ) from None


def read_question(trained: Trained, question: str) -> tuple[str, ...]:
    """What a reader must know about how a model reads a question."""
    words = require_words(question)
    notices = []
    known = trained.words.vocabulary.index
    unknown = dict.fromkeys(word for word in words[:LENGTH] if word not in known)
    if unknown:
        named = ", ".join(f"“{word}”" for word in unknown)
        what = "a word" if len(unknown) == 1 else "words"
        notices.append(f"{named}: {what} that the model has never read")
    if len(words) > LENGTH:
        notices.append(f"only the first {LENGTH} words of the question are read")
    return tuple(notices)


def require_words(question: str) -> list[str]:
    """The words of a question; raise when it has none."""
    words = tokenize(question)
    if not words:
        raise ValueError("the question has no words; type one, such as: What color is the circle?")
    return words


def rank_answers(trained: Trained, question: Tensor, context: Tensor) -> tuple[Guess, ...]:
    """The likeliest answers to a question (1, output) with an image context (1, H)."""
    logits = give_logits(trained.model, question, context.contiguous())[0]
    best = logits.topk(min(NUM_SHOWN, len(logits)))
    words = trained.words.answers.words
    return tuple(
        Guess(words[number], probability)
        for number, probability in zip(
            best.indices.tolist(), best.values.sigmoid().tolist(), strict=True
        )
    )
