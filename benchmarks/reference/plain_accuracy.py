"""The official accuracy step by step, in plain code that the fast one is compared with."""

import re
from typing import Any

from data.vqa.normalisation import ARTICLES, CONTRACTIONS, NUMBER_WORDS

MARKS = [";", "/", "[", "]", '"', "{", "}", "(", ")", "=", "+", "\\", "_", "-"]
MARKS += [">", "<", "@", "`", ",", "?", "!"]


def strip_marks(text: str) -> str:
    """Every mark in turn, each judged by the text as it came; then up to 32 periods, one by one."""
    result = text
    for mark in MARKS:
        beside_space = (mark + " ") in text or (" " + mark) in text
        comma_in_number = re.search(r"(\d)(\,)(\d)", text) is not None
        result = result.replace(mark, "" if beside_space or comma_in_number else " ")
    kept, removed = [], 0
    for place, character in enumerate(result):
        following = result[place + 1 : place + 2]
        if character == "." and re.match(r"\d", following) is None and removed < 32:
            removed += 1
        else:
            kept.append(character)
    return "".join(kept)


def repair(text: str) -> str:
    """Number words, articles and contractions, one word after the other."""
    words = []
    for word in text.lower().split():
        if word in NUMBER_WORDS:
            word = NUMBER_WORDS[word]
        if word not in ARTICLES:
            words.append(word)
    for place, word in enumerate(words):
        if word in CONTRACTIONS:
            words[place] = CONTRACTIONS[word]
    return " ".join(words)


def score_question(prediction: str, answers: list[str]) -> float:
    """The accuracy of one prediction in [0, 1], comparing it with the others of each annotator."""
    answers = [answer.replace("\n", " ").replace("\t", " ").strip() for answer in answers]
    prediction = prediction.replace("\n", " ").replace("\t", " ").strip()
    if len(set(answers)) > 1:
        answers = [repair(strip_marks(answer)) for answer in answers]
        prediction = repair(strip_marks(prediction))
    accuracies = []
    for own in range(len(answers)):
        others = [answer for place, answer in enumerate(answers) if place != own]
        matching = [answer for answer in others if answer == prediction]
        accuracies.append(min(1, float(len(matching)) / 3))
    return add(accuracies) / len(accuracies)


def score_file(annotations: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, Any]:
    """All scores of a result list, from the entries of the official files as they are."""
    predictions = {result["question_id"]: result["answer"] for result in results}
    accuracies: list[float] = []
    groups: dict[str, dict[str, list[float]]] = {"answer_type": {}, "question_type": {}}
    per_question = {}
    for annotation in annotations:
        answers = [answer["answer"] for answer in annotation["answers"]]
        accuracy = score_question(predictions[annotation["question_id"]], answers)
        accuracies.append(accuracy)
        per_question[str(annotation["question_id"])] = round(100 * accuracy, 2)
        for key, group in groups.items():
            group.setdefault(annotation[key], []).append(accuracy)
    return {
        "overall": percent(accuracies),
        "perAnswerType": {name: percent(of) for name, of in groups["answer_type"].items()},
        "perQuestionType": {name: percent(of) for name, of in groups["question_type"].items()},
        "perQuestion": per_question,
    }


def percent(accuracies: list[float]) -> float:
    """The mean in percent, rounded to two digits."""
    return round(100 * add(accuracies) / len(accuracies), 2)


def add(numbers: list[float]) -> float:
    """A sum from left to right; the built-in `sum` compensates rounding from Python 3.12 on."""
    total = 0.0
    for number in numbers:
        total += number
    return total
