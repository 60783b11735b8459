"""Pictures with questions to begin with: some of the data that a model was trained on."""

from dataclasses import dataclass
from pathlib import Path

from data.splits import Folder
from scripts.choice import draw_rows
from scripts.evaluation import read_questions

SPLIT = "val"


@dataclass(frozen=True)
class Sample:
    """A picture's file and a question about it."""

    path: Path
    question: str


def draw_samples(root: str | Path, num: int, seed: int) -> list[Sample]:
    """Questions of the validation split at random, on different images; none where none are."""
    folder = Folder(root)
    if not folder.image_folder(SPLIT).is_dir() or not folder.questions(SPLIT).is_file():
        return []
    questions = read_questions(folder, SPLIT)
    samples = []
    for row in draw_rows(questions.image_ids, num, seed).tolist():
        try:
            path = folder.images(SPLIT, int(questions.image_ids[row]))
        except FileNotFoundError:
            continue  # some have only a part of the images
        samples.append(Sample(path, questions.texts[row]))
    return samples
