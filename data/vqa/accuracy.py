"""The official VQA accuracy, to the last digit."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from data.vqa.normalisation import clean_whitespace, normalise_answer
from data.vqa.questions import Annotation


@dataclass(frozen=True)
class Scores:
    """Accuracies in percent, rounded to two digits, and the size of each group."""

    overall: float
    per_answer_type: dict[str, float]
    per_question_type: dict[str, float]
    per_question: dict[int, float]
    num_per_answer_type: dict[str, int]
    num_per_question_type: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """The scores under the official names."""
        return {
            "overall": self.overall,
            "perAnswerType": self.per_answer_type,
            "perQuestionType": self.per_question_type,
            "perQuestion": {str(number): score for number, score in self.per_question.items()},
        }


def score_results(annotations: Iterable[Annotation], results: Mapping[int, str]) -> Scores:
    """Score every annotated question; `results` must have an answer for each of them."""
    accuracies: dict[int, float] = {}
    answer_types: dict[str, list[float]] = defaultdict(list)
    question_types: dict[str, list[float]] = defaultdict(list)
    for annotation in annotations:
        accuracy = score_answer(results[annotation.question_id], annotation.answers)
        accuracies[annotation.question_id] = accuracy
        answer_types[annotation.answer_type].append(accuracy)
        question_types[annotation.question_type].append(accuracy)
    if not accuracies:
        raise ValueError("there are no annotated questions to score")
    return Scores(
        overall=average_percent(accuracies.values()),
        per_answer_type={name: average_percent(group) for name, group in answer_types.items()},
        per_question_type={name: average_percent(group) for name, group in question_types.items()},
        per_question={number: round(100 * value, 2) for number, value in accuracies.items()},
        num_per_answer_type={name: len(group) for name, group in answer_types.items()},
        num_per_question_type={name: len(group) for name, group in question_types.items()},
    )


def score_answer(prediction: str, answers: tuple[str, ...]) -> float:
    """The accuracy of one prediction in [0, 1].

    Answers are normalised only when people disagree: where all ten wrote "one", "1" scores 0.
    """
    distinct = set(answers)
    form = clean_whitespace
    if len(distinct) > 1 and len(set(map(clean_whitespace, distinct))) > 1:
        form = normalise_answer
    predicted = form(prediction)
    matches = {answer: form(answer) == predicted for answer in distinct}
    return average_annotators(tuple(map(matches.__getitem__, answers)))


@cache
def average_annotators(matches: tuple[bool, ...]) -> float:
    """The mean over annotators of min(1, matches among the others / 3).

    Summed from left to right as the official code does: its rounding decides ties in the averages.
    """
    total = 0.0
    for own in matches:
        total += min(1.0, (sum(matches) - own) / 3)
    return total / len(matches)


def average_percent(accuracies: Iterable[float]) -> float:
    """The official mean in percent: summed from left to right, rounded to two digits."""
    total, count = 0.0, 0
    for accuracy in accuracies:
        total += accuracy
        count += 1
    return round(100 * total / count, 2)
