"""Ten annotators who know the answer and sometimes slip; most of them are always right."""

from typing import Any

import numpy as np

from data.shapes.questions import Question
from data.vqa.questions import NUM_ANNOTATORS

MOST_SLIPS = 4  # of ten, so that the right answer keeps the majority and its full score
SLIP_RATES = (0.02, 0.12, 0.30)  # of easy, ordinary and hard questions
RATE_SHARES = (0.6, 0.3, 0.1)
NEAR = {  # what colours and shapes are taken for
    "red": ("orange", "pink"),
    "orange": ("red", "yellow", "brown"),
    "yellow": ("orange", "gold"),
    "green": ("blue", "teal"),
    "blue": ("purple", "green"),
    "purple": ("blue", "pink"),
    "pink": ("red", "purple"),
    "brown": ("orange", "black"),
    "white": ("gray",),
    "gray": ("white", "black"),
    "black": ("gray", "dark"),
    "circle": ("ring", "oval"),
    "square": ("diamond", "rectangle"),
    "triangle": ("diamond", "star"),
    "cross": ("star", "plus"),
    "star": ("cross", "heart"),
    "heart": ("circle", "star"),
}


def answer(generator: np.random.Generator, question: Question) -> list[dict[str, Any]]:
    """The ten entries of an official annotation."""
    rate = generator.choice(SLIP_RATES, p=RATE_SHARES)
    slips = np.flatnonzero(generator.random(NUM_ANNOTATORS) < rate)
    slips = generator.permutation(slips)[:MOST_SLIPS]
    wrong = list_slips(question)
    entries = []
    for number in range(NUM_ANNOTATORS):
        slipped = number in slips
        text = wrong[generator.integers(len(wrong))] if slipped else question.answer
        confidence = "maybe" if slipped or generator.random() < 0.1 else "yes"
        entries.append({"answer": text, "answer_confidence": confidence, "answer_id": number + 1})
    return entries


def list_slips(question: Question) -> list[str]:
    """Answers given by mistake: the next number, a similar colour, the other one of two."""
    true = question.answer
    if true in ("yes", "no"):
        return ["no" if true == "yes" else "yes"] * 4 + ["maybe"]
    if true.isdigit():
        return [str(int(true) + 1)] + ([str(int(true) - 1)] if true != "0" else [])
    if true == "equal":
        return ["same", "neither", "yes"]
    if question.template.startswith("more"):
        return ["equal", "yes"]
    if question.template == "which":
        return [word for word in ("both", "neither", "yes") if word != true]
    if question.template == "size":
        return ["medium", "small" if true == "big" else "big"]
    return list(NEAR[true])
