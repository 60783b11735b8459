"""One photograph and one question, answered by a trained model under any K and λ."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention import AttentionOutput, Density, Grid
from attention.selection import description_length
from data.backbones.registry import Backbone, open_backbone
from data.features.dtype import DTYPES
from data.io.images import Picture
from data.text.tokenizer import tokenize
from mcan.evaluation.predict import answer_logits
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.precision import autocast_to, choose_dtype
from mcan.runtime.settings import Precision

NUM_PREDICTIONS = 5


@dataclass(frozen=True)
class Prediction:
    """An answer and its probability."""

    answer: str
    probability: float


@dataclass(frozen=True)
class Answer:
    """The predictions under one choice of K or λ, and the mixture they are based on."""

    predictions: tuple[Prediction, ...]  # the likeliest first
    mixture: Density | None  # of one image; None for discrete attention
    lam: float | None  # None where the head has none
    is_fixed: bool  # K was given, not selected with λ
    description_lengths: tuple[float, ...]  # C(1), C(2), …, the least of which λ selects

    @property
    def num_components(self) -> int:
        """K, or 0 for discrete attention."""
        return 0 if self.mixture is None else int(self.mixture.num_components[0, 0])


@dataclass(frozen=True)
class ForwardPass:
    """What the network computed for one image and question: enough to answer under any K or λ."""

    trained: TrainedModel
    question: str
    notices: tuple[str, ...]  # what a reader must know about the question
    pooled: Tensor  # (1, output): the question
    attended: AttentionOutput  # of one image
    size: tuple[int, int]  # rows and columns of cells

    @property
    def weights(self) -> np.ndarray:
        """(h, w) float64: the discrete attention weights."""
        return self.attended.weights[0].double().cpu().numpy().reshape(self.size)

    @property
    def lam(self) -> float | None:
        """The head's own λ; None where there is nothing to select."""
        return None if self.attended.candidates is None else self.trained.lam

    @property
    def k_max(self) -> int:
        """The most components there are to select from; 0 where there is no choice."""
        candidates = self.attended.candidates
        return 0 if candidates is None or self.lam is None else candidates.context.shape[1]

    @torch.inference_mode()
    def answer(self, lam: float | None = None, num_components: int | None = None) -> Answer:
        """Answer with the K of another λ, or with a K that is given; None is as trained."""
        attended, candidates = self.attended, self.attended.candidates
        lam = self.lam if lam is None else lam
        context, mixture, lengths = attended.context, attended.mixture, ()
        if candidates is not None and lam is not None:
            selected = candidates.select(lam)
            if num_components is not None:
                selected = torch.full_like(selected, num_components)
            context, mixture = candidates.context_of(selected), candidates.mixture_of(selected)
            likelihood, complexity = candidates.log_likelihood, candidates.complexity
            lengths = tuple(description_length(likelihood, complexity, lam)[0].tolist())
        (predictions,) = rank_answers(self.trained, self.pooled, context, NUM_PREDICTIONS)
        return Answer(predictions, mixture, lam, num_components is not None, lengths)


@dataclass(frozen=True)
class SingleQuestionModel:
    """A model, and the backbone that computes the features it was trained on."""

    trained: TrainedModel
    backbone: Backbone
    dtype: torch.dtype

    @torch.inference_mode()
    def run(self, picture: Picture, question: str) -> ForwardPass:
        """Run the network once on an image of any mode and size."""
        notices = (*describe_unread(self.trained, question), *describe_selection(self.trained))
        device = next(self.trained.model.parameters()).device
        described = self.backbone.describe(picture)  # (h, w, F)
        height, width, num_features = described.shape
        # in the precision of a store, which the model was trained on
        stored = DTYPES[self.trained.manifest.dtype]
        rows = stored.to_tensor(stored.encode(0, described.reshape(-1, num_features)))
        tokens = torch.tensor([self.trained.words.encode(question)])
        grid = Grid.of([(height, width)], device=device)
        with autocast_to(self.dtype, device):
            pooled, attended = self.trained.model.attend(
                rows[None].to(device), grid, tokens.to(device)
            )
        text = " ".join(question.split())
        return ForwardPass(self.trained, text, notices, pooled, attended, (height, width))


def open_with_backbone(
    trained: TrainedModel, *, weights: str | None, precision: Precision
) -> SingleQuestionModel:
    """The model with its backbone; raise when its features cannot be computed here."""
    device = next(trained.model.parameters()).device
    name, resize = trained.manifest.backbone, trained.manifest.resize
    if not trained.manifest.is_grid:
        raise ValueError(
            f"{trained.path} was trained on regions of '{name}', a detector that is not here, so "
            "it cannot be asked about an image without them; evaluate and figures work"
        )
    _, named, made_with = trained.manifest.source.rpartition(", weights ")
    made_with = made_with if named else ""  # stores of older versions do not say it
    try:
        backbone = open_backbone(name, weights or None, device, resize)
    except ValueError as error:
        same = f"; pass the weights= that they were extracted with (fingerprint {made_with})"
        raise ValueError(
            f"{trained.path} was trained on features of backbone '{name}', and {error}"
            f"{same if made_with and not weights else ''}"
        ) from None
    num_features = trained.model.sizes.num_features
    if backbone.num_features != num_features:
        raise ValueError(
            f"{trained.path} was trained on {num_features} features per cell, but backbone "
            f"{backbone.name} now makes {backbone.num_features}; train again on such features"
        )
    if backbone.weights and made_with not in ("", backbone.weights):
        raise ValueError(
            f"{trained.path} was trained on features of other {backbone.name} weights (fingerprint "
            f"{made_with}) than {weights or 'the default'} ({backbone.weights}); pass those: "
            f"weights=…"
        )
    return SingleQuestionModel(trained, backbone, choose_dtype(precision, device))


def describe_unread(trained: TrainedModel, question: str) -> tuple[str, ...]:
    """Sentences about the words of a question that the model does not know or does not read."""
    words = split_question(question)
    notices = []
    known = trained.words.vocabulary.index
    length = trained.words.question_length
    unknown = dict.fromkeys(word for word in words[:length] if word not in known)
    if unknown:
        named = ", ".join(f"“{word}”" for word in unknown)
        what = "a word" if len(unknown) == 1 else "words"
        notices.append(f"{named}: {what} that the model has never read")
    if len(words) > length:
        notices.append(f"only the first {length} words of the question are read")
    return tuple(notices)


def describe_selection(trained: TrainedModel) -> tuple[str, ...]:
    """A sentence where the model's K* depends on other questions, which are not there."""
    if trained.batch_size in (None, 1):
        return ()
    return (f"K is selected from this question alone, not in batches of {trained.batch_size}",)


def split_question(question: str) -> list[str]:
    """The words of a question; raise when it has none."""
    words = tokenize(question)
    if not words:
        raise ValueError("the question has no words; type one, such as: What color is the circle?")
    return words


def rank_answers(
    trained: TrainedModel, question: Tensor, context: Tensor, num: int
) -> list[tuple[Prediction, ...]]:
    """The `num` likeliest answers to each question (b, output) with image contexts (b, H)."""
    logits = answer_logits(trained.model, question, context.contiguous())
    if logits.isnan().any():
        raise ValueError(
            f"the answers of {trained.path} are NaN: its weights or the features of an image are "
            "damaged; train it again, or look at its features with make verify-features"
        )
    best = logits.topk(min(num, logits.shape[1]))
    words = trained.words.answers.words
    return [
        tuple(Prediction(words[n], p) for n, p in zip(numbers, probabilities, strict=True))
        for numbers, probabilities in zip(
            best.indices.tolist(), best.values.sigmoid().tolist(), strict=True
        )
    ]
