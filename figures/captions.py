"""Answers in words: their probabilities, what people answered, and how K was selected."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mcan.evaluation.single_question import Answer, ForwardPass, Prediction


def describe_prediction(prediction: Prediction) -> str:
    """An answer and its probability."""
    return f"{name_answer(prediction.answer)}, {show_percent(prediction.probability)}"


def name_answer(answer: str) -> str:
    """An answer as it is shown; an empty one, the normal form of “a”, needs a word."""
    return answer or "(empty answer)"


def show_percent(probability: float) -> str:
    """A probability in whole percent, never rounded to certainty."""
    percent = round(100 * probability)
    if percent == 100 and probability < 1:
        return "> 99 %"
    return f"{percent} %" if percent or not probability else "< 1 %"


def show_number(value: float) -> str:
    """A number in two digits, with a minus sign and not a hyphen."""
    return f"{value:.2f}".replace("-", "−")


def count_answers(answers: Sequence[str]) -> str:
    """Distinct answers, most frequent first, each with how many people gave it."""
    counted = Counter(answers).most_common()
    return ", ".join(f"{name_answer(answer)} ({count})" for answer, count in counted)


def explain_selection(options: Mapping[str, Any]) -> str:
    """What C(k) is under these options of the head."""
    lam = options.get("lam", 0)
    charged = "k" if options.get("penalty", "components") == "components" else "parameters"
    fit = "log-likelihood"
    if options.get("density", "gaussian") != "gaussian":  # K is selected by Gaussians all the same
        fit += " of the Gaussians"
    return f"C(k) = −2 · {fit} + {lam:g} · {charged}; the least is chosen."


def format_answer(forward: ForwardPass, answer: Answer) -> str:
    """The question, the likeliest answers, the number of components, and the notices."""
    names = [name_answer(prediction.answer) for prediction in answer.predictions]
    width = max(map(len, names))
    lines = [
        f"  {name:{width}}  {show_percent(prediction.probability):>6}"
        for name, prediction in zip(names, answer.predictions, strict=True)
    ]
    k, attention = answer.num_components, f"{forward.trained.head_name} attention"
    if answer.description_lengths:
        attention += f", K* = {k} of at most {forward.k_max}, with λ = {answer.lam:g}"
    elif k:
        attention += f", K = {k}"
    notices = [f"notice: {notice}" for notice in forward.notices]
    return "\n".join([forward.question, *lines, attention, *notices])
