"""The official accuracy of as many answers as VQA-v2's val has: ours, and step by step."""

from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Part, Row, as_measurements, ratios
from benchmarks.reference.plain_accuracy import score_file
from benchmarks.timing import interleave
from data.vqa.accuracy import score_results
from data.vqa.normalisation import clean_whitespace, normalise_answer
from data.vqa.questions import Annotation

NUM_VAL = 214_354
KINDS = {"yes/no": 0.38, "number": 0.13, "other": 0.49}
NUMBERS = ["1", "2", "two", "3", "0", "none", "4", "a few", "10", "5"]
NOUNS = ["cat", "the dog", "Tennis racket", "white", "black & white", "t-shirt", "it's raining"]
NOUNS += ["frisbee.", "skate board", "on the table", "1,000", "p.m.", "dont know", "men's", "red"]


def make_entries(count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Annotations and results as the entries of the official files; ten people who often agree."""
    generator = np.random.default_rng(0)
    kinds = generator.choice(list(KINDS), count, p=list(KINDS.values()))
    phrases = [*NOUNS, *(f"{one} {other}" for one in NOUNS for other in NOUNS)]
    phrases += [f"{phrase}, {n}" for n in range(30) for phrase in phrases]  # 7,440 in all
    words = {"yes/no": ["yes", "no", "Yes", "maybe"], "number": NUMBERS, "other": phrases}
    annotations, results = [], []
    for number, kind in enumerate(kinds.tolist()):
        choices = words[kind]
        first, *picks = ((generator.zipf(1.3, 12) - 1) % len(choices)).tolist()
        agree = generator.random() < 0.35
        loyal = (generator.random(11) < 0.6).tolist()
        given = [choices[first if agree or loyal[n] else picks[n]] for n in range(10)]
        annotations.append(
            {
                "question_id": 1000 * number,
                "image_id": number // 5,
                "question_type": f"type {number % 65}",
                "answer_type": kind,
                "multiple_choice_answer": choices[first],
                "answers": [{"answer": text} for text in given],
            }
        )
        answer = choices[first if loyal[10] else picks[10]]
        results.append({"question_id": 1000 * number, "answer": answer})
    return annotations, results


def read_entries(annotations: list[dict[str, Any]]) -> list[Annotation]:
    """The annotations as our commands hold them once their files are read."""
    return [
        Annotation(**{**entry, "answers": tuple(each["answer"] for each in entry["answers"])})
        for entry in annotations
    ]


def measure(rounds: int = 2, count: int = NUM_VAL) -> Part:
    """The row of official scoring; raises when a single digit differs."""
    entries, results = make_entries(count)
    annotations = read_entries(entries)
    answers = {result["question_id"]: result["answer"] for result in results}
    if score_results(annotations, answers).to_json() != score_file(entries, results):
        raise AssertionError("the fast accuracy is not the official one")

    def score_again() -> None:
        for cached in (normalise_answer, clean_whitespace):
            cached.cache_clear()  # a command starts without what the last round has normalised
        score_results(annotations, answers)

    works = {"ours": score_again, "plain": lambda: score_file(entries, results)}
    times = interleave(works, torch.device("cpu"), rounds, "scoring", is_warm=True)
    title = f"official scoring of {count:,} answers, same digits"
    against = "the straightforward official algorithm"
    gain = ratios(times["plain"], times["ours"])
    return Part([Row(title, against, "≥ 5", gain)], as_measurements("scoring", times))
