"""The questions of a split with their images, human answers and human attention maps."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from data.features.store_set import StoreSet
from data.human_attention.measures import jensen_shannon
from data.human_attention.vqa_hat import (
    MappedQuestion,
    MeanMap,
    average_maps,
    match_by_words,
    read_distributions,
)
from data.io.images import Picture, read_image, to_rgb
from data.vqa.accuracy import score_answer
from data.vqa.data_folder import DataFolder
from data.vqa.questions import Annotation, Questions
from figures.attention_samples import AttentionSample
from mcan.evaluation.evaluation_split import open_features
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.settings import Runtime

LARGEST = 2000  # pixels per side; COCO's photos have 640
MAP_SIDE = 200  # pixels of the longer side on which human maps are averaged
CORRECT = 0.5  # official accuracy from which on an answer counts as correct: two people gave it


@dataclass(frozen=True)
class IllustratedSplit:
    """A split with all that is known about its questions, by question id."""

    folder: DataFolder
    name: str
    questions: Questions
    annotations: dict[int, Annotation]  # none for a split that has none
    human_attention: dict[int, MappedQuestion]  # of the questions that have human maps
    stores: StoreSet

    def row(self, question_id: int) -> int:
        """Where a question stands in the split."""
        return int(np.flatnonzero(self.questions.ids == question_id)[0])

    def photo(self, image_id: int) -> np.ndarray:
        """(H, W, 3) uint8: the image upright; a huge one is made smaller."""
        return to_photo(read_image(self.find_image(image_id)), LARGEST)

    def find_image(self, image_id: int) -> Path:
        """The file of an image, in whichever part of the split has it."""
        *others, last = self.folder.layout.split_names(self.name)
        for name in others:
            try:
                return self.folder.image(name, image_id)
            except FileNotFoundError:
                continue
        return self.folder.image(last, image_id)

    def accuracy(self, question_id: int, answer: str) -> float | None:
        """The official accuracy of an answer in [0, 1]; None where nobody has answered."""
        annotation = self.annotations.get(question_id)
        return None if annotation is None else score_answer(answer, annotation.answers)

    def human_map(self, question_id: int) -> MeanMap | None:
        """Human attention; None where there is no map, or none that is not black."""
        mapped = self.human_attention.get(question_id)
        return None if mapped is None else average_maps(mapped, MAP_SIDE)

    def divergence(self, sample: AttentionSample) -> float | None:
        """Jensen–Shannon divergence in bits from human maps, on average; None on regions."""
        mapped = self.human_attention.get(sample.question_id)
        if mapped is None or not self.stores.is_grid:
            return None
        maps = read_distributions(mapped, *sample.cells.shape)
        divergences = [float(jensen_shannon(sample.cells.ravel(), each)) for each in maps]
        return float(np.mean(divergences)) if divergences else None


def to_photo(picture: Picture, largest: int) -> np.ndarray:
    """A picture as it is drawn on: (H, W, 3) uint8, upright, at most `largest` pixels per side."""
    photo = to_rgb(picture)
    photo.thumbnail((largest, largest), Image.Resampling.LANCZOS)
    return np.asarray(photo)


def open_illustrated_split(
    folder: DataFolder, name: str, models: Sequence[TrainedModel], runtime: Runtime
) -> IllustratedSplit:
    """Read the questions, answers and maps of a split, and open its stores for these models."""
    for part in folder.layout.split_names(name):
        if not folder.image_folder(part).is_dir():
            raise FileNotFoundError(
                f"{folder.image_folder(part)} does not exist; put the images there to draw on them "
                f"(see docs/data.md)"
            )
    questions = folder.read_questions(name)
    annotations = folder.read_annotations(name) if folder.has_annotations(name) else []
    stores = open_features(folder, name, models, runtime)
    return IllustratedSplit(
        folder,
        name,
        questions,
        {annotation.question_id: annotation for annotation in annotations},
        match_by_words(folder, name, questions),
        stores,
    )
