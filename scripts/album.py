"""The questions of a split as a reader sees them: photo, words, what people said and saw."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from omegaconf import DictConfig
from PIL import Image

from data.accuracy import score_answer
from data.divergence import jensen_shannon
from data.human_attention import (
    Blackness,
    LookedAt,
    average_area,
    list_looked_at,
    read_distributions,
    read_map,
)
from data.patch import flatten
from data.pictures import read_image
from data.questions import Annotation, Questions, load_annotations
from data.splits import Folder, split_names
from data.store_set import StoreSet, open_stores
from data.tokenizer import tokenize
from scripts.evaluation import read_questions
from scripts.looks import Look
from scripts.trained import Trained

LARGEST = 2000  # pixels a side; COCO's photos have 640
RIGHT = 0.5  # official accuracy from which on an answer counts as right: two people gave it
MAP_SIDE = 200  # pixels of the longer side on which people's maps are averaged


@dataclass(frozen=True)
class HumanMap:
    """Where people looked to answer a question, on average."""

    cells: np.ndarray  # (h, w), sum 1
    num_people: int


@dataclass(frozen=True)
class Album:
    """A split with all that is known about its questions, by question id."""

    folder: Folder
    split: str
    questions: Questions
    annotations: dict[int, Annotation]  # none for a split that has none
    looked: dict[int, LookedAt]  # where people looked, for the questions that have maps
    stores: StoreSet

    def take(self, rows: np.ndarray) -> Questions:
        """The questions of some rows (n,)."""
        questions = self.questions
        texts = [questions.texts[row] for row in rows.tolist()]
        return Questions(questions.ids[rows], questions.image_ids[rows], texts, questions.subtype)

    def row(self, question_id: int) -> int:
        """Where a question stands in the split."""
        return int(np.flatnonzero(self.questions.ids == question_id)[0])

    def photo(self, image_id: int) -> np.ndarray:
        """(H, W, 3) uint8: the image upright; a huge one is made smaller."""
        image = flatten(read_image(self.find_image(image_id)))
        image.thumbnail((LARGEST, LARGEST), Image.Resampling.LANCZOS)
        return np.asarray(image)

    def find_image(self, image_id: int) -> Path:
        """The file of an image, in whichever part of the split has it."""
        *others, last = split_names(self.split)
        for name in others:
            try:
                return self.folder.images(name, image_id)
            except FileNotFoundError:
                continue
        return self.folder.images(last, image_id)

    def accuracy(self, question_id: int, answer: str) -> float | None:
        """The official accuracy of an answer in [0, 1]; None where nobody has answered."""
        annotation = self.annotations.get(question_id)
        return None if annotation is None else score_answer(answer, annotation.answers)

    def human_map(self, question_id: int) -> HumanMap | None:
        """Where people looked; None where there is no map, or none that is not black."""
        looked = self.looked.get(question_id)
        if looked is None:
            return None
        pictures = [picture for picture in map(read_map, looked.maps) if picture.any()]
        if not pictures:
            return None
        scale = MAP_SIDE / max(pictures[0].shape)
        height, width = (max(1, round(side * scale)) for side in pictures[0].shape)
        averaged = [average_area(picture, height, width) for picture in pictures]
        mean = sum(each / each.sum() for each in averaged) / len(averaged)
        return HumanMap(np.asarray(mean), len(averaged))

    def divergence(self, look: Look) -> float | None:
        """Jensen–Shannon divergence in bits from people's maps, on average over them."""
        looked = self.looked.get(look.question_id)
        if looked is None:
            return None
        own, (height, width) = look.cells.ravel(), look.cells.shape
        maps = read_distributions(looked, height, width, Blackness())
        apart = [float(jensen_shannon(own, each)) for each in maps]
        return float(np.mean(apart)) if apart else None


def open_album(
    root: str | Path, split: str, models: Sequence[Trained], runtime: DictConfig
) -> Album:
    """Read the questions, answers and maps of a split, and open its stores for these models."""
    folder = Folder(root)
    for name in split_names(split):
        if not folder.image_folder(name).is_dir():
            raise FileNotFoundError(
                f"{folder.image_folder(name)} does not exist; put the images there to draw on them "
                f"(see docs/data.md)"
            )
    questions = read_questions(folder, split)
    files = folder.annotation_files(split)
    annotations = load_annotations(files) if all(map(Path.is_file, files)) else []
    stores = open_stores(folder.stores(split), runtime.reader, runtime.stage_to)
    for model in models:
        backbone = stores.stores[0].manifest.backbone
        model.refuse_features(stores.num_features, backbone, stores.names())
    return Album(
        folder,
        split,
        questions,
        {annotation.question_id: annotation for annotation in annotations},
        find_looked_at(folder, split, questions),
        stores,
    )


def find_looked_at(folder: Folder, split: str, questions: Questions) -> dict[int, LookedAt]:
    """People's maps by the ids of these questions; empty where the folder has none.

    VQA-HAT numbers questions as VQA v1 does: the same image and the same words are the same
    question.
    """
    by_words: dict[tuple[int, tuple[str, ...]], LookedAt] = {}
    for name in split_names(split):
        if folder.human_maps(name).is_dir() and folder.v1_questions(name).is_file():
            for looked in list_looked_at(folder, name):
                by_words[looked.image_id, tuple(tokenize(looked.text))] = looked
    if not by_words:
        return {}
    images = {image_id for image_id, _ in by_words}
    found = {}
    for number, image_id, text in zip(
        questions.ids.tolist(), questions.image_ids.tolist(), questions.texts, strict=True
    ):
        if image_id in images:
            looked_at = by_words.get((image_id, tuple(tokenize(text))))
            if looked_at is not None:
                found[number] = looked_at
    return found
