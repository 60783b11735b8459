"""Which questions to show: named, at random, where models differ, where one of them fails."""

import itertools
from collections.abc import Sequence

import numpy as np
from omegaconf import DictConfig

from data.divergence import jensen_shannon
from data.entries import name_ids
from data.questions import Questions
from mcan.processes import World
from scripts.album import RIGHT, Album
from scripts.looks import Look, look_through
from scripts.trained import Trained

CHOICES = ("random", "differ", "failures", "human")


def check_choice(config: DictConfig) -> None:
    """Raise when the settings that choose questions make no sense."""
    if config.choose not in CHOICES:
        raise ValueError(f"choose must be one of {', '.join(CHOICES)}, not {config.choose!r}")
    for name, least in (("num", 1), ("pool", 0), ("seed", 0)):
        if config[name] < least:
            raise ValueError(f"{name} is {config[name]}, expected at least {least}")
    names = "checkpoints=[…]: folders of runs, checkpoints, or names of runs"
    if not config.checkpoints:
        raise ValueError(f"there is no model to look through; name some with {names}")
    if is_ranked(config) and len(config.checkpoints) < 2:
        raise ValueError(f"choose={config.choose} compares models; name at least two with {names}")


def is_ranked(config: DictConfig) -> bool:
    """Whether the models' own looks decide what is shown."""
    return not config.questions and config.choose in ("differ", "failures")


def choose_looks(
    config: DictConfig, models: list[Trained], album: Album, world: World
) -> list[list[Look]]:
    """Every model's looks at the questions that are to be drawn."""
    rows = choose_rows(config, album)
    questions = album.take(rows)
    looks = [
        look_through(model, questions, album.stores, world, config.runtime) for model in models
    ]
    if not is_ranked(config):
        return looks
    if config.choose == "differ":
        order = rank_differing(looks)
    else:
        order = rank_failures(album, looks, find_failing(models))
        if not len(order):
            raise ValueError(
                f"among {len(rows)} questions there is none that "
                f"{models[find_failing(models)].name} gets wrong and another model right; look at "
                f"more of them with pool=…"
            )
    return [[each[place] for place in order[: config.num]] for each in looks]


def choose_rows(config: DictConfig, album: Album) -> np.ndarray:
    """The questions to look at: those to draw, or those to choose from."""
    questions = album.questions
    if config.questions:
        return find_rows(questions, list(config.questions))
    if config.choose == "random":
        return draw_rows(questions.image_ids, config.num, config.seed)
    if config.choose == "human":
        there = np.flatnonzero(np.isin(questions.ids, list(album.looked)))
        if not len(there):
            raise ValueError(
                f"{album.folder.root} has no human maps of {config.split}; choose=human needs them "
                f"(see docs/data.md)"
            )
        return there[draw_rows(questions.image_ids[there], config.num, config.seed)]
    if config.choose == "failures" and not album.annotations:
        raise ValueError(f"choose=failures needs annotations, which {config.split} does not have")
    return draw_rows(questions.image_ids, config.pool or len(questions), config.seed)


def find_failing(models: list[Trained]) -> int:
    """The model whose failures are wanted: the multimodal one, else the last."""
    heads = [model.options["name"] for model in models]
    return heads.index("multimodal") if "multimodal" in heads else len(models) - 1


def find_rows(questions: Questions, ids: Sequence[int]) -> np.ndarray:
    """(n,): the rows of named questions, in the order they are named."""
    wrong = [each for each in ids if type(each) is not int]
    if wrong:
        raise ValueError(f"questions must be a list of question ids, not {wrong[0]!r}")
    places = {number: row for row, number in enumerate(questions.ids.tolist())}
    missing = [number for number in ids if number not in places]
    if missing:
        raise ValueError(
            f"the split has no question {name_ids(missing)}; name question ids of this split"
        )
    return np.array([places[number] for number in dict.fromkeys(ids)], dtype=np.int64)


def draw_rows(image_ids: np.ndarray, num: int, seed: int) -> np.ndarray:
    """(n,): `num` rows at random by seed, of as many different images (Q,) as there are."""
    order = np.random.default_rng(seed).permutation(len(image_ids))
    _, first, inverse = np.unique(image_ids[order], return_index=True, return_inverse=True)
    is_again = first[inverse] != np.arange(len(order))
    return order[np.argsort(is_again, kind="stable")][:num]


def rank_differing(looks: Sequence[Sequence[Look]]) -> np.ndarray:
    """(n,): places of questions, those first to which the models' attention differs most.

    `looks` holds each model's looks at the same questions; the measure is `mean_divergence`.
    """
    distances = [mean_divergence(of_question) for of_question in zip(*looks, strict=True)]
    return np.argsort(-np.array(distances), kind="stable")


def mean_divergence(looks: Sequence[Look]) -> float:
    """The Jensen–Shannon divergence in bits between two models, on average over all pairs."""
    pairs = itertools.combinations([look.cells.ravel() for look in looks], 2)
    return float(np.mean([jensen_shannon(one, other) for one, other in pairs]))


def rank_failures(album: Album, looks: Sequence[Sequence[Look]], failing: int) -> np.ndarray:
    """(n,): places of questions that model number `failing` gets wrong and another one right.

    The largest difference in accuracy comes first, then the surer wrong answer.
    """
    scored = np.array(
        [[album.accuracy(look.question_id, look.guess.answer) for look in each] for each in looks],
        dtype=float,
    )
    own, best = scored[failing], np.delete(scored, failing, axis=0).max(0)
    sureness = [look.guess.probability for look in looks[failing]]
    places = np.flatnonzero((own < RIGHT) & (best >= RIGHT))
    return np.array(sorted(places, key=lambda n: (own[n] - best[n], -sureness[n])), dtype=np.int64)
