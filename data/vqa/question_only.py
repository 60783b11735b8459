"""The question-only baseline: what a model must beat to have used the image."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from data.vqa.accuracy import Scores, score_results
from data.vqa.data_folder import DataFolder
from data.vqa.questions import Annotation


def score_question_only(
    folder: DataFolder, trained: str, validated: str, question_ids: np.ndarray | None = None
) -> Scores:
    """Official scores of the answer most frequent in training for each question's very words.

    `question_ids` (n,) are those of the validated split to answer, else it is all of them.
    """
    train, train_texts = load_annotated(folder, trained)
    val, val_texts = load_annotated(folder, validated)
    answers = guess_by_text(train, train_texts, val, val_texts)
    if question_ids is not None:
        kept = set(question_ids.tolist())
        pairs = [pair for pair in zip(val, answers, strict=True) if pair[0].question_id in kept]
        val, answers = [each for each, _ in pairs], [answer for _, answer in pairs]
    return score_answers(val, answers)


def guess_by_text(
    train: list[Annotation], train_texts: list[str], val: list[Annotation], val_texts: list[str]
) -> list[str]:
    """For each question the answer most frequent for its text, type, or at all in training."""
    best = majority_by(train, train_texts)
    by_type = guess_by_type(train, val)
    return [best.get(text, other) for text, other in zip(val_texts, by_type, strict=True)]


def guess_by_type(train: list[Annotation], val: list[Annotation]) -> list[str]:
    """For each question the answer most frequent for its type, or at all in training."""
    best, overall = majority_by(train, [each.question_type for each in train]), majority(train)
    return [best.get(each.question_type, overall) for each in val]


def load_annotated(folder: DataFolder, split: str) -> tuple[list[Annotation], list[str]]:
    """The annotations of a split and their questions' texts, in the same order."""
    questions = folder.read_questions(split)
    return folder.match_annotations(split), questions.texts


def score_answers(annotations: list[Annotation], answers: list[str]) -> Scores:
    """Official scores of one answer per annotation."""
    ids = [each.question_id for each in annotations]
    return score_results(annotations, dict(zip(ids, answers, strict=True)))


def majority(annotations: Iterable[Annotation]) -> str:
    """The answer that is right most often."""
    counts = Counter(each.multiple_choice_answer for each in annotations)
    return min(counts, key=lambda answer: (-counts[answer], answer))


def majority_by(annotations: list[Annotation], keys: Iterable[object]) -> dict[object, str]:
    """The answer that is right most often among the annotations of each key."""
    groups: dict[object, list[Annotation]] = defaultdict(list)
    for key, annotation in zip(keys, annotations, strict=True):
        groups[key].append(annotation)
    return {key: majority(group) for key, group in groups.items()}
