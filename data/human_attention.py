"""VQA-HAT: where people looked to answer a question, as distributions over the cells of a grid."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from data.questions import load_annotations, load_questions
from data.splits import Folder
from data.tokenizer import tokenize

NAME = re.compile(r"(\d+)_(\d+)\.png")
UNKNOWN = "unknown"  # the answer type of a question that the annotations do not have


@dataclass(frozen=True)
class LookedAt:
    """A question (with its VQA v1 id and text) and the files of its maps, one an annotator."""

    question_id: int
    image_id: int
    text: str
    maps: tuple[Path, ...]

    @property
    def annotators(self) -> tuple[int, ...]:
        """The n of each file <question_id>_<n>.png."""
        return tuple(int(path.stem.rpartition("_")[2]) for path in self.maps)


@dataclass
class Blackness:
    """How many maps were read, and how many of them were black and carry no distribution."""

    read: int = 0
    black: int = 0


def list_looked_at(folder: Folder, split: str) -> list[LookedAt]:
    """The questions of a split that have maps, by id; ids are those of the VQA v1 question file."""
    maps = list_maps(folder.human_maps(split))
    questions = load_questions([folder.v1_questions(split)])
    asked = {
        question_id: (image_id, text)
        for question_id, image_id, text in zip(
            questions.ids.tolist(), questions.image_ids.tolist(), questions.texts, strict=True
        )
    }
    foreign = [question_id for question_id in maps if question_id not in asked]
    if foreign:
        raise ValueError(
            f"{folder.human_maps(split)} has maps of {len(foreign)} questions, such as "
            f"{foreign[0]}, that {folder.v1_questions(split)} does not have; VQA-HAT uses ids of "
            "VQA v1, so give the v1 question file of the same split"
        )
    return [LookedAt(number, *asked[number], tuple(paths)) for number, paths in maps.items()]


def list_maps(folder: Path) -> dict[int, list[Path]]:
    """The files <question_id>_<n>.png of a folder by question id, each list by n."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} does not exist; unpack the maps of VQA-HAT there (see docs/data.md)"
        )
    found: dict[int, list[tuple[int, Path]]] = defaultdict(list)
    for path in folder.iterdir():
        match = NAME.fullmatch(path.name)
        if match is not None:
            found[int(match[1])].append((int(match[2]), path))
    if not found:
        raise FileNotFoundError(f"{folder} holds no map named <question_id>_<n>.png")
    return {number: [path for _, path in sorted(found[number])] for number in sorted(found)}


def find_answer_types(folder: Folder, split: str, looked: Sequence[LookedAt]) -> tuple[str, ...]:
    """The answer type of every question, from the annotations of VQA-v2 where they have it.

    VQA v1 and v2 number questions differently: the same image and the same words are the same
    question. Without the files of v2, or where it has dropped the question, the type is unknown.
    """
    if not (folder.questions(split).is_file() and folder.annotations(split).is_file()):
        return (UNKNOWN,) * len(looked)
    questions = load_questions([folder.questions(split)])
    annotations = load_annotations([folder.annotations(split)])
    types = {each.question_id: each.answer_type for each in annotations}
    wanted = {each.image_id for each in looked}
    known: dict[tuple[int, str], str] = {}
    for number, image_id, text in zip(
        questions.ids.tolist(), questions.image_ids.tolist(), questions.texts, strict=True
    ):
        if image_id in wanted and number in types:
            known.setdefault((image_id, " ".join(tokenize(text))), types[number])
    return tuple(
        known.get((each.image_id, " ".join(tokenize(each.text))), UNKNOWN) for each in looked
    )


def read_map(path: Path) -> np.ndarray:
    """One map as it is, (H, W) float64; any PNG mode becomes grey."""
    try:
        with Image.open(path) as image:
            if image.mode.startswith("I"):  # 16 bits a pixel: keep them all
                return np.asarray(image, dtype=np.float64)
            return np.asarray(image.convert("L"), dtype=np.float64)
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"{path} is not a readable picture: {error}") from None


def read_distributions(
    looked: LookedAt, height: int, width: int, blackness: Blackness
) -> Iterator[np.ndarray]:
    """Each annotator's distribution over a grid, (height·width,), sum 1; black maps are skipped."""
    for path in looked.maps:
        blackness.read += 1
        cells = average_area(read_map(path), height, width).reshape(-1)
        if cells.sum() > 0:
            yield cells / cells.sum()
        else:
            blackness.black += 1


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
