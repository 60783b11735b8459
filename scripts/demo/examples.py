"""Example images with questions, from the data that a model was trained on."""

import shutil
from pathlib import Path
from typing import NamedTuple

from data.vqa.data_folder import DataFolder
from figures.question_selection import draw_rows

SPLIT = "val"


class Example(NamedTuple):
    """An image's file and a question about it."""

    path: Path
    question: str


def draw_examples(folder: DataFolder, num: int, seed: int, output: Path) -> list[Example]:
    """Random questions of the validation split on different images, copied into `output`.

    Gradio serves no other files. None where the questions or the images are not there.
    """
    if not folder.has_questions(SPLIT) or not folder.image_folder(SPLIT).is_dir():
        return []
    output.mkdir()
    questions = folder.read_questions(SPLIT)
    examples = []
    for row in draw_rows(questions.image_ids, num, seed).tolist():
        try:
            path = folder.image(SPLIT, int(questions.image_ids[row]))
        except FileNotFoundError:
            continue  # a user may have only a part of the images
        examples.append(Example(output / path.name, questions.texts[row]))
        shutil.copyfile(path, examples[-1].path)
    return examples
