"""Large question and annotation files are parsed once: what they hold lies as arrays beside them.

A cache is read if it was made, in this format, from a file of the same size and time; else it is
made again. Where it cannot be written, files are parsed every time.
"""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from data.io.atomic_files import atomic_write
from data.io.locks import FileLock
from data.vqa.questions import (
    NUM_ANNOTATORS,
    Annotation,
    Questions,
    parse_annotations,
    parse_questions,
)

FORMAT = 1
LEAST_BYTES = 8 << 20  # of a file that is worth it: smaller ones are parsed in a tenth of a second
# RuntimeError: zipfile takes a damaged flag for encryption, or for a method that it does not have
UNREADABLE = (OSError, ValueError, LookupError, EOFError, RuntimeError, zipfile.BadZipFile)
Parsed = TypeVar("Parsed")
Arrays = Mapping[str, np.ndarray]


def read_questions(path: Path) -> Questions:
    """The questions of one file."""
    return read_through_cache(path, parse_questions, questions_to_arrays, questions_from_arrays)


def read_annotations(path: Path) -> list[Annotation]:
    """The annotations of one file, of ten answers each."""
    return read_through_cache(
        path, parse_annotations, annotations_to_arrays, annotations_from_arrays
    )


def read_through_cache(
    path: Path,
    parse: Callable[[Path], Parsed],
    to_arrays: Callable[[Parsed], Arrays],
    from_arrays: Callable[[Arrays], Parsed],
) -> Parsed:
    """What a file holds, from its cache if there is a good one; of several processes one parses."""
    if not path.is_file() or path.stat().st_size < LEAST_BYTES:
        return parse(path)
    found = load_cache(path, from_arrays)
    if found is not None:
        return found
    try:
        lock = FileLock(path.with_name(f".{path.name}.lock"), "", wait=True, required=False)
    except OSError:  # somebody else's folder: there is no writing a cache into it either
        return parse(path)
    with lock:
        found = load_cache(path, from_arrays)  # another process may have made it meanwhile
        if found is None:
            before = stamp(path)
            found = parse(path)
            save_cache(path, to_arrays(found), before)
    return found


def cache_of(path: Path) -> Path:
    """Where the arrays of a file lie."""
    return path.with_suffix(".arrays.npz")


def stamp(path: Path) -> np.ndarray:
    """By what a cache knows its file again."""
    status = path.stat()
    return np.array([FORMAT, status.st_size, status.st_mtime_ns])


def load_cache(path: Path, from_arrays: Callable[[Arrays], Parsed]) -> Parsed | None:
    """What the cache of a file holds; None without one, or if it is of another file or damaged."""
    try:
        with np.load(cache_of(path)) as arrays:
            return from_arrays(arrays) if np.array_equal(arrays["stamp"], stamp(path)) else None
    except UNREADABLE:
        return None


def save_cache(path: Path, arrays: Arrays, before: np.ndarray) -> None:
    """Write the cache of a file that had this stamp before, if there is room and leave to."""
    contents: dict[str, Any] = {"stamp": before, **arrays}
    try:
        if not np.array_equal(stamp(path), before):  # replaced while it was parsed
            return
        with atomic_write(cache_of(path)) as temporary, open(temporary, "wb") as file:
            np.savez(file, **contents)
    except OSError:
        pass


def questions_to_arrays(questions: Questions) -> Arrays:
    """Ids, and all texts in one."""
    return {
        "ids": questions.ids,
        "image_ids": questions.image_ids,
        **join_texts([questions.subtype, *questions.texts]),
    }


def questions_from_arrays(arrays: Arrays) -> Questions:
    """The inverse."""
    subtype, *texts = split_texts(arrays)
    return Questions(arrays["ids"], arrays["image_ids"], texts, subtype)


def annotations_to_arrays(annotations: Sequence[Annotation]) -> Arrays:
    """Ids, and a number for every text: most answers are among a few thousand."""
    numbers: dict[str, int] = {}
    rows = [
        [
            numbers.setdefault(text, len(numbers))
            for text in (
                each.question_type,
                each.answer_type,
                each.multiple_choice_answer,
                *each.answers,
            )
        ]
        for each in annotations
    ]
    return {
        "question_ids": np.array([each.question_id for each in annotations], dtype=np.int64),
        "image_ids": np.array([each.image_id for each in annotations], dtype=np.int64),
        "numbers": np.array(rows, dtype=np.int32).reshape(-1, 3 + NUM_ANNOTATORS),
        **join_texts(list(numbers)),
    }


def annotations_from_arrays(arrays: Arrays) -> list[Annotation]:
    """The inverse."""
    texts = np.array([*split_texts(arrays), None], dtype=object)[:-1]
    columns = texts[arrays["numbers"]]  # (Q, 3 + answers)
    return list(
        map(
            Annotation,
            arrays["question_ids"].tolist(),
            arrays["image_ids"].tolist(),
            *columns[:, :3].T.tolist(),
            map(tuple, columns[:, 3:].tolist()),
        )
    )


def join_texts(texts: Sequence[str]) -> Arrays:
    """All texts in one, and where each ends, in characters."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    together = "".join(texts).encode("utf-8", "surrogatepass")  # JSON may hold half a character
    return {"texts": np.frombuffer(together, np.uint8), "ends": ends}


def split_texts(arrays: Arrays) -> list[str]:
    """The inverse."""
    together = arrays["texts"].tobytes().decode("utf-8", "surrogatepass")
    ends = arrays["ends"].tolist()
    return [together[start:end] for start, end in zip([0, *ends], ends, strict=False)]
