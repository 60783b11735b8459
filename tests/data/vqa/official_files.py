"""Small files in the official formats, for tests."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


def make_question(question_id: int, text: str = "what is it?", image_id: int = 1) -> dict[str, Any]:
    return {"question_id": question_id, "image_id": image_id, "question": text}


def make_annotation(
    question_id: int, answers: Sequence[str], choice: str = "yes", image_id: int = 1
) -> dict[str, Any]:
    return {
        "question_id": question_id,
        "image_id": image_id,
        "question_type": "what is",
        "answer_type": "other",
        "multiple_choice_answer": choice,
        "answers": [
            {"answer": answer, "answer_confidence": "yes", "answer_id": number}
            for number, answer in enumerate(answers, 1)
        ],
    }


def write_questions(path: Path, questions: Any, subtype: str = "val2014") -> Path:
    path.write_text(json.dumps({"data_subtype": subtype, "questions": questions}))
    return path


def write_annotations(path: Path, annotations: Any) -> Path:
    path.write_text(json.dumps({"data_subtype": "val2014", "annotations": annotations}))
    return path


def real_folder() -> Path:
    """The folder of real VQA-v2 samples; skips the test where there is none."""
    if "VQA_REAL" not in os.environ:
        pytest.skip("VQA_REAL names no folder")
    return Path(os.environ["VQA_REAL"])
