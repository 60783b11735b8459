"""The figure of one photograph and one question: the photo, the attention, the answers."""

import numpy as np

from figures.attention_samples import read_mixtures
from figures.captions import describe_prediction, explain_selection
from figures.drawing.figure import FigureContent
from figures.drawing.panel import Panel
from mcan.evaluation.single_question import Answer, ForwardPass


def make_answer_figure(forward: ForwardPass, answer: Answer, photo: np.ndarray) -> FigureContent:
    """The photo (H, W, 3) uint8 beside the attention over it; the answers below."""
    panels = (Panel("image"), attention_panel(forward, answer))
    predictions = "; ".join(map(describe_prediction, answer.predictions))
    caption = [f"Answers: {predictions}", *forward.notices]
    if answer.description_lengths:
        caption.append(explain_answer(forward, answer))
    return FigureContent(photo, forward.question, panels, tuple(caption), forward.trained.name)


def attention_panel(forward: ForwardPass, answer: Answer) -> Panel:
    """The attention under the head's name and K: K* where λ selected it."""
    title = forward.trained.head_name
    if answer.description_lengths:
        title += f", K{'' if answer.is_fixed else '*'} = {answer.num_components}"
    mixture = None if answer.mixture is None else read_mixtures(answer.mixture)[0]
    return Panel(title, forward.weights, mixture)


def explain_answer(forward: ForwardPass, answer: Answer) -> str:
    """Why K is what it is, under the λ in force."""
    if answer.is_fixed:
        return f"K = {answer.num_components} is given, not chosen."
    return explain_selection({**forward.trained.options, "lam": answer.lam})
