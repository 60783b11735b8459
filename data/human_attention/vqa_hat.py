"""VQA-HAT: where people looked to answer a question, as distributions over the cells of a grid."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from data.io.images import errors_naming
from data.text.tokenizer import tokenize
from data.vqa.data_folder import DataFolder
from data.vqa.questions import Questions, load_questions

NAME = re.compile(r"(\d+)_(\d+)\.png")
UNKNOWN = "unknown"  # the answer type of a question that the annotations do not have


@dataclass(frozen=True)
class MappedQuestion:
    """A question, with its VQA v1 id and text, and the files of its maps, one per annotator."""

    question_id: int
    image_id: int
    text: str
    maps: tuple[Path, ...]

    @property
    def annotators(self) -> tuple[int, ...]:
        """The n of each file <question_id>_<n>.png."""
        return tuple(int(path.stem.rpartition("_")[2]) for path in self.maps)


@dataclass(frozen=True)
class MeanMap:
    """The mean of the maps that people made of one question."""

    cells: np.ndarray  # (h, w), sum 1
    num_people: int


def list_mapped_questions(folder: DataFolder, split: str) -> list[MappedQuestion]:
    """The questions of a split that have maps, by id; ids are those of the VQA v1 question file."""
    maps = list_maps(folder.human_maps(split))
    questions = load_questions([folder.v1_questions(split)])
    asked = {number: (image, text) for number, image, text in rows_of(questions)}
    foreign = [question_id for question_id in maps if question_id not in asked]
    if foreign:
        raise ValueError(
            f"{folder.human_maps(split)} has maps of {len(foreign)} questions, such as "
            f"{foreign[0]}, that {folder.v1_questions(split)} does not have; VQA-HAT uses ids of "
            "VQA v1, so give the v1 question file of the same split"
        )
    return [MappedQuestion(number, *asked[number], tuple(paths)) for number, paths in maps.items()]


def list_maps(folder: Path) -> dict[int, list[Path]]:
    """The files <question_id>_<n>.png of a folder by question id, each list by n."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} does not exist; unpack the maps of VQA-HAT there (see docs/data.md)"
        )
    matches = (NAME.fullmatch(path.name) for path in folder.iterdir())
    maps: dict[int, list[Path]] = {}
    for match in sorted(filter(None, matches), key=lambda match: (int(match[1]), int(match[2]))):
        maps.setdefault(int(match[1]), []).append(folder / match[0])
    if not maps:
        raise FileNotFoundError(f"{folder} holds no map named <question_id>_<n>.png")
    return maps


def match_by_words(
    folder: DataFolder, split: str, questions: Questions
) -> dict[int, MappedQuestion]:
    """The human maps of VQA-v2 questions, by their ids; empty where the folder has none.

    VQA v1 and v2 number questions differently: the same image and the same words are the same
    question.
    """
    by_words = {
        key_of(mapped.image_id, mapped.text): mapped
        for name in folder.layout.split_names(split)
        if folder.human_maps(name).is_dir() and folder.v1_questions(name).is_file()
        for mapped in list_mapped_questions(folder, name)
    }
    images = {image_id for image_id, _ in by_words}  # tokenizing all the others takes a while
    return {
        number: mapped
        for number, image_id, text in rows_of(questions)
        if image_id in images and (mapped := by_words.get(key_of(image_id, text)))
    }


def find_answer_types(
    folder: DataFolder, split: str, mapped: Sequence[MappedQuestion]
) -> tuple[str, ...]:
    """The answer type of every question, from the annotations of VQA-v2 where they have it.

    Without the files of v2, or where it has dropped the question, the type is unknown.
    """
    if not (folder.has_questions(split) and folder.has_annotations(split)):
        return (UNKNOWN,) * len(mapped)
    types = {each.question_id: each.answer_type for each in folder.read_annotations(split)}
    images = {each.image_id for each in mapped}
    known: dict[tuple[int, str], str] = {}
    for number, image_id, text in rows_of(folder.read_questions(split)):
        if image_id in images and number in types:
            known.setdefault(key_of(image_id, text), types[number])
    return tuple(known.get(key_of(each.image_id, each.text), UNKNOWN) for each in mapped)


def key_of(image_id: int, text: str) -> tuple[int, str]:
    """What a question has in common in VQA v1 and v2."""
    return image_id, " ".join(tokenize(text))


def rows_of(questions: Questions) -> Iterator[tuple[int, int, str]]:
    """Id, image id and text of every question."""
    return zip(questions.ids.tolist(), questions.image_ids.tolist(), questions.texts, strict=True)


def read_map(path: Path) -> np.ndarray:
    """One map as it is, (H, W) float64; any PNG mode becomes grey."""
    with errors_naming(path), Image.open(path) as image:
        if image.mode.startswith("I"):  # 16 bits per pixel: keep them all
            return np.asarray(image, dtype=np.float64)
        return np.asarray(image.convert("L"), dtype=np.float64)


def read_distributions(mapped: MappedQuestion, height: int, width: int) -> Iterator[np.ndarray]:
    """Each annotator's distribution over a grid, (height·width,), sum 1; black maps are skipped."""
    for path in mapped.maps:
        picture = read_map(path)
        if picture.any():
            yield distribute(picture, height, width)


def average_maps(mapped: MappedQuestion, longer_side: int) -> MeanMap | None:
    """The mean of a question's maps, each of sum 1; None where all of them are black."""
    pixels = read_map(mapped.maps[0]).shape
    height, width = (max(1, round(side * longer_side / max(pixels))) for side in pixels)
    distributions = list(read_distributions(mapped, height, width))
    if not distributions:
        return None
    return MeanMap(np.mean(distributions, axis=0).reshape(height, width), len(distributions))


def distribute(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """A picture (H, W) that is not black as a distribution over a grid, (height·width,)."""
    cells = average_area(picture, height, width).reshape(-1)
    return np.asarray(cells / cells.sum())


def average_area(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """Mean of (H, W) over the exact area of each cell of a grid, pixels cut: (height, width)."""
    rows, columns = overlap(picture.shape[0], height), overlap(picture.shape[1], width)
    return np.asarray(rows @ picture @ columns.T)


def overlap(pixels: int, cells: int) -> np.ndarray:
    """The share of each cell of a line that each pixel covers, (cells, pixels); rows sum to 1."""
    size = pixels / cells
    edge = np.arange(cells + 1) * size
    pixel = np.arange(pixels)
    right = np.minimum(edge[1:, None], pixel + 1)
    left = np.maximum(edge[:-1, None], pixel)
    return np.asarray(np.maximum(right - left, 0) / size)
