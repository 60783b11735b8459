"""The scenes as official files: questions, annotations, VQA v1 questions, metadata."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.io.atomic_files import write_json
from data.shapes.annotators import answer
from data.shapes.questions import TEMPLATES, Question
from data.shapes.scene import Scene
from data.vqa.data_folder import DataFolder
from data.vqa.layout import VQA_V2

LICENSE = {"name": "MIT", "url": "https://opensource.org/license/mit"}


@dataclass(frozen=True)
class AskedScene:
    """A scene under its image id, with its questions in order."""

    image_id: int
    scene: Scene
    questions: list[Question]

    def number(self) -> Iterator[tuple[int, Question]]:
        """Every question with its official id."""
        for place, question in enumerate(self.questions):
            yield self.image_id * 1000 + place, question


def write_questions(
    path: Path, split: str, asked: list[AskedScene], official_id: Callable[[int], int] = int
) -> None:
    """A question file of VQA-v2, or of VQA v1 with its ids, as VQA-HAT has them."""
    questions = [
        {
            "image_id": each.image_id,
            "question": question.text,
            "question_id": official_id(number),
        }
        for each in asked
        for number, question in each.number()
    ]
    write_json(path, {**head(split), "task_type": "Open-Ended", "questions": questions})


def v1_id(question_id: int) -> int:
    """The VQA v1 id of a question: image id times ten plus its place."""
    return question_id // 1000 * 10 + question_id % 1000


def write_annotations(
    path: Path, split: str, asked: list[AskedScene], generator: np.random.Generator
) -> None:
    """A VQA-v2 annotation file with ten answers per question."""
    annotations = [
        {
            "question_type": TEMPLATES[question.template].question_type,
            "multiple_choice_answer": question.answer,
            "answers": answer(generator, question),
            "image_id": each.image_id,
            "answer_type": TEMPLATES[question.template].answer_type,
            "question_id": number,
        }
        for each in asked
        for number, question in each.number()
    ]
    write_json(path, {**head(split), "annotations": annotations})


def head(split: str) -> dict[str, Any]:
    """The fields that every official file begins with."""
    return {
        "info": {"description": "shapes, the dataset that ships with the code", "version": "1.0"},
        "license": LICENSE,
        "data_type": "shapes",
        "data_subtype": VQA_V2.question_subtype(split),
    }


def write_metadata(path: Path, asked: list[AskedScene]) -> None:
    """Write scenes by image id, and by question id what decides the answer."""
    scenes = {
        str(each.image_id): {
            "height": each.scene.height,
            "width": each.scene.width,
            "background": each.scene.background,
            "objects": [
                {
                    "shape": thing.shape,
                    "color": thing.color,
                    "big": thing.big,
                    "box": [round(side, 3) for side in thing.box],
                }
                for thing in each.scene.things
            ],
        }
        for each in asked
    }
    questions = {
        str(number): {
            "template": question.template,
            "answer": question.answer,
            "objects": list(question.things),
            "far_apart": each.scene.are_far_apart(question.things),
        }
        for each in asked
        for number, question in each.number()
    }
    write_json(path, {"scenes": scenes, "questions": questions})


def write_split(
    folder: DataFolder, split: str, asked: list[AskedScene], generator: np.random.Generator
) -> None:
    """The files of one split: annotations for train and val, a part of test as test-dev."""
    write_questions(folder.questions(split), split, asked)
    if split == "test":
        write_questions(folder.questions("test-dev"), "test-dev", asked[: len(asked) // 4])
        return
    write_annotations(folder.annotations(split), split, asked, generator)
    if split == "val":
        write_questions(folder.v1_questions(split), split, asked, v1_id)
