"""Which questions to show: named, at random, where models differ, where one of them fails."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from data.human_attention.measures import jensen_shannon
from figures.attention_samples import AttentionSample, collect_samples
from figures.illustrated_split import CORRECT, IllustratedSplit
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.settings import Runtime


@dataclass(frozen=True)
class QuestionSelection:
    """Named question ids, or a way to choose `num` questions, some among a random pool."""

    questions: tuple[int, ...]
    choose: str  # random, differ, failures or human
    num: int
    pool: int  # 0: all questions
    seed: int

    @property
    def compares_models(self) -> bool:
        """Whether the models' attention and answers decide what is shown."""
        return not self.questions and self.choose in ("differ", "failures")

    def check(self, num_models: int) -> None:
        """Raise when there are too few models."""
        names = "checkpoints=[…]: folders of runs, checkpoints, or names of runs"
        if not num_models:
            raise ValueError(f"there is no model to show; name some with {names}")
        if self.compares_models and num_models < 2:
            raise ValueError(
                f"choose={self.choose} compares models; name at least two with {names}"
            )

    def rows(self, split: IllustratedSplit) -> np.ndarray:
        """(n,): the questions to show, or those to choose from where models are compared."""
        questions = split.questions
        if self.questions:
            return questions.find(self.questions)
        if self.choose == "random":
            return draw_rows(questions.image_ids, self.num, self.seed)
        if self.choose == "human":
            rows = np.flatnonzero(np.isin(questions.ids, list(split.human_attention)))
            if not len(rows):
                raise ValueError(
                    f"{split.folder.root} has no human maps of {split.name}; choose=human needs "
                    f"them (see docs/data.md)"
                )
            return rows[draw_rows(questions.image_ids[rows], self.num, self.seed)]
        if self.choose == "failures" and not split.annotations:
            raise ValueError(f"choose=failures needs annotations, which {split.name} does not have")
        return draw_rows(questions.image_ids, self.pool or len(questions), self.seed)


def select_samples(
    selection: QuestionSelection,
    models: Sequence[TrainedModel],
    split: IllustratedSplit,
    runtime: Runtime,
) -> list[list[AttentionSample]]:
    """Every model's attention to the questions that are to be shown."""
    questions = split.questions.take(selection.rows(split))
    samples = [collect_samples(model, questions, split.stores, runtime) for model in models]
    if not selection.compares_models:
        return samples
    if selection.choose == "differ":
        order = rank_differing(samples)
    else:
        failing = find_failing(models)
        order = rank_failures(split, samples, failing)
        if not len(order):
            raise ValueError(
                f"among {len(questions)} questions there is none that {models[failing].name} gets "
                f"wrong and another model right; look at more of them with pool=…"
            )
    return [[each[place] for place in order[: selection.num]] for each in samples]


def find_failing(models: Sequence[TrainedModel]) -> int:
    """The model whose failures are wanted: the multimodal one, else the last."""
    heads = [model.options["name"] for model in models]
    return heads.index("multimodal") if "multimodal" in heads else len(models) - 1


def draw_rows(image_ids: np.ndarray, num: int, seed: int) -> np.ndarray:
    """(n,): `num` rows at random by seed, of as many different images (Q,) as there are."""
    order = np.random.default_rng(seed).permutation(len(image_ids))
    _, first, inverse = np.unique(image_ids[order], return_index=True, return_inverse=True)
    is_again = first[inverse] != np.arange(len(order))
    return order[np.argsort(is_again, kind="stable")][:num]


def rank_differing(samples: Sequence[Sequence[AttentionSample]]) -> np.ndarray:
    """(n,): places of questions, those first where the models' attention differs most.

    `samples` holds each model's attention to the same questions.
    """
    distances = [mean_divergence(of_question) for of_question in zip(*samples, strict=True)]
    return np.argsort(-np.array(distances), kind="stable")


def mean_divergence(samples: Sequence[AttentionSample]) -> float:
    """The Jensen–Shannon divergence in bits between two models, on average over all pairs."""
    pairs = itertools.combinations([sample.cells.ravel() for sample in samples], 2)
    return float(np.mean([jensen_shannon(one, other) for one, other in pairs]))


def rank_failures(
    split: IllustratedSplit, samples: Sequence[Sequence[AttentionSample]], failing: int
) -> np.ndarray:
    """(n,): places of questions that model number `failing` gets wrong and another one right.

    The largest difference in accuracy comes first, then the more confident wrong answer.
    """
    scored = np.array(
        [[split.accuracy(s.question_id, s.prediction.answer) for s in each] for each in samples],
        dtype=float,
    )
    own, best = scored[failing], np.delete(scored, failing, axis=0).max(0)
    confidence = [sample.prediction.probability for sample in samples[failing]]
    places = np.flatnonzero((own < CORRECT) & (best >= CORRECT))
    ranked = sorted(places, key=lambda n: (own[n] - best[n], -confidence[n]))
    return np.array(ranked, dtype=np.int64)
