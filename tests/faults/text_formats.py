"""Every text file format: a small valid file, its reader and a check of the result."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.features.manifest import Manifest
from data.features.resumable_build import recall_scan, save_scan
from data.io.atomic_files import read_json
from data.io.download import read_validator
from data.io.journal import Journal
from data.shapes.metadata import read_question_metadata
from data.text.answer_list import AnswerList
from data.text.embeddings import load_embeddings
from data.text.published_words import number_words, order
from data.text.vocabulary import Vocabulary
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_annotations, load_questions
from data.vqa.results import check_results, load_results, write_results
from mcan.training.metrics_file import read_metrics
from scripts.cluster.planned_run import PlannedRun
from scripts.paper.measures import read as read_report
from tests.data.vqa.official_files import (
    make_annotation,
    make_question,
    write_annotations,
    write_questions,
)
from tests.faults.fuzzing import Format

TEXTS = ["What is it?", "Is the man's hat red?", "Où est l’été – 東京?", "how many?"]
ANSWERS = ["yes", "no", "2", "été"]


def write_text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text, encoding="utf-8")


def make_questions(path: Path) -> object:
    return write_questions(path, [make_question(n, text) for n, text in enumerate(TEXTS)])


def make_annotations(path: Path) -> object:
    entries = [make_annotation(n, [*ANSWERS, *ANSWERS, "a", "b"], "yes") for n in range(4)]
    return write_annotations(path, entries)


def make_results(path: Path) -> object:
    return write_results(path, range(4), ANSWERS)


def check_questions(questions: Any) -> None:
    assert len(questions.ids) == len(questions.image_ids) == len(questions.texts)
    assert questions.ids.dtype == np.int64
    Vocabulary.build(questions.texts)


def check_annotations(annotations: Any) -> None:
    listed = AnswerList(ANSWERS)
    for each in annotations:
        assert len(each.answers) == 10
        assert all(0 < score <= 1 for score in listed.soft_scores(each)[1])


def read_embeddings(path: Path) -> torch.Tensor:
    words = ["PAD", "UNK", "what", "is", "été"]
    generator = torch.Generator().manual_seed(0)
    return load_embeddings(path, words, generator, 4, show_progress=False).matrix


def check_embeddings(matrix: torch.Tensor) -> None:
    assert matrix.isfinite().all()


def read_journal(path: Path) -> Any:
    journal = Journal(path)
    try:
        return journal.read()
    finally:
        journal.close(remove=False)


def check_journal(value: Any) -> None:
    identity, done = value
    assert identity is None or isinstance(identity, dict)
    assert all(type(n) is int for pair in done.items() for n in pair)


def same_as(expected: Any) -> Callable[[Any], object]:
    """For files with a checksum: if it is read at all, it is what was written."""

    def check(value: Any) -> None:
        assert value == expected

    return check


def is_list_of_lines(value: Any) -> None:
    assert all(isinstance(line, dict) for line in value)


def has_settings(config: Any) -> None:
    assert isinstance(config, dict)
    assert type(config["optim"]["epochs"]) is int


WORDS = ("PAD", "UNK", "what", "is", "été", "東京")
NUMBERS = json.dumps({word: number for number, word in enumerate(WORDS)})
GLOVE = "".join(f"{w} 0.1 -2.5e-1 {n} 3.25\n" for n, w in enumerate([*WORDS, "New York", ". ."]))
METRICS = "".join(json.dumps({"epoch": n, "step": 9 * n, "loss": 1 / n}) + "\n" for n in (1, 2, 3))
BACKGROUNDS = {"questions": {str(n): {"template": "count", "objects": [1, 2]} for n in range(3)}}
MANIFEST = Manifest("été", "R-50", (600, 1000), 3, 1425, 2048, "0f" * 32).dump()
SCAN = {n: ((n, n + 1), (2048, 19, 25)) for n in range(4)}
JOURNAL = '{"source": "a", "num_features": 5}\n' + "".join(f"{n} {n * n}\n" for n in range(9))
REPORT = json.dumps({"accuracy": 51.2, "rows": [{"lam": 0.5, "k_max": 4}]})
CONFIG = "optim:\n  epochs: 2\n  batch_size: 6\ndata:\n  root: ${oc.env:HOME}\nseed: 1\n"


def parse_manifest(path: Path) -> Manifest:
    return Manifest.parse(path.read_bytes().decode("utf-8", "replace"), path)


def of_run(path: Path) -> PlannedRun:
    return PlannedRun(path.parent, ())


FORMATS = [
    Format("questions", "questions.json", make_questions, lambda path: load_questions([path]),
           check_questions),
    Format("annotations", "annotations.json", make_annotations,
           lambda path: load_annotations([path]), check_annotations),
    Format("results", "results.json", make_results, load_results),
    Format("written results", "results.json", make_results,
           lambda path: check_results(path, np.arange(4), set(ANSWERS), "questions")),
    Format("vocabulary", "vocabulary.json", lambda path: Vocabulary(WORDS).save(path),
           lambda path: Vocabulary.load(path).words, same_as(WORDS)),
    Format("answer list", "answers.json", lambda path: AnswerList(ANSWERS, 8).save(path),
           lambda path: AnswerList.load(path).words, same_as(tuple(ANSWERS))),
    Format("GloVe", "glove.txt", write_text(GLOVE), read_embeddings, check_embeddings),
    Format("metrics", "metrics.jsonl", write_text(METRICS), read_metrics, is_list_of_lines),
    Format("metrics of a report", "metrics.jsonl", write_text(METRICS),
           lambda path: of_run(path).metrics(), is_list_of_lines),
    Format("shapes_metadata.json", "shapes_metadata.json", write_text(json.dumps(BACKGROUNDS)),
           lambda path: read_question_metadata(DataFolder(path.parent))),
    Format("manifest", "store.h5", write_text(MANIFEST), parse_manifest),
    Format("record of a scan", "store.h5.scan", lambda path: save_scan(path, Path("a"), SCAN),
           lambda path: recall_scan(path, Path("a"))),
    Format("journal", "store.h5.journal", write_text(JOURNAL), read_journal, check_journal),
    Format("note of a download", "a.zip.part.json", write_text('{"validator": "\\"one\\""}'),
           lambda path: read_validator(path.with_suffix(""))),
    Format("numbered words", "tokens.json", write_text(NUMBERS),
           lambda path: order(read_json(path), str(path), "words", len(WORDS))),
    Format("numbered questions", "questions.json", make_questions,
           lambda path: number_words([str(path)], 16)),
    Format("report", "val.json", write_text(REPORT), read_report),
    Format("config of a run", "config.yaml", write_text(CONFIG),
           lambda path: of_run(path).config(), has_settings),
]  # fmt: skip
