"""VQA-v2's size: seconds and peak memory of the commands, on made-up data of its counts."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measurement import Measurement, Part, Row
from benchmarks.parts.growth import fit_exponent
from data.features.writer import StoreWriter
from data.vqa.layout import VQA_V2
from data.vqa.questions import NUM_ANNOTATORS

COUNTS = {"train": (443_757, 82_783), "val": (214_354, 40_504), "test": (447_793, 81_434)}
NUM_TEST_DEV = 107_394  # of the questions of test
NUM_WORDS, NUM_TYPES = 14_000, 65
NUM_ANSWERS = 3_129  # about as many are then frequent enough for the answer list
NUM_FEATURES, GRID = 8, (4, 4)  # small: what depends on features and cells is measured elsewhere
SIZES = (0.1, 1.0)  # of VQA-v2's counts
LIMIT = 12  # seconds to the first step of a run whose files were read before
SETTINGS = ["runtime.num_threads=1", "runtime.show_progress=false"]


def write_dataset(root: Path, size: float) -> None:
    """Questions, annotations and features of all splits."""
    generator, first_image = np.random.default_rng(0), 1
    for split, (num_questions, num_images) in COUNTS.items():
        num_questions, num_images = round(size * num_questions), round(size * num_images)
        images = range(first_image, first_image + num_images)
        first_image += num_images
        write_features(root / VQA_V2.fill(VQA_V2.features, split), images, generator)
        questions = list(draw_questions(images, num_questions, generator))
        write_entries(root, VQA_V2.questions, split, "questions", questions)
        if split in VQA_V2.annotated:
            annotations = draw_annotations(questions, generator)
            write_entries(root, VQA_V2.annotations, split, "annotations", annotations)
    part = questions[: round(size * NUM_TEST_DEV)]
    write_entries(root, VQA_V2.questions, "test-dev", "questions", part)


def write_features(path: Path, images: Sequence[int], generator: np.random.Generator) -> None:
    """A store of small features."""
    rows = generator.exponential(size=(GRID[0] * GRID[1], NUM_FEATURES)).astype(np.float16)
    path.parent.mkdir(parents=True, exist_ok=True)
    grids = dict.fromkeys(images, GRID)
    with StoreWriter(path, grids, NUM_FEATURES, source="made up", backbone="made up") as writer:
        for image_id in images:
            writer.write(image_id, rows)


def draw_questions(
    images: Sequence[int], count: int, generator: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Six words each, frequent ones first as in language; a third of the texts are distinct."""
    words = draw_frequent(NUM_WORDS, (max(1, count // 3), 6), generator)
    texts = [" ".join(f"word{word}" for word in row) + "?" for row in words.tolist()]
    drawn = generator.integers(len(texts), size=count).tolist()
    for number, text in enumerate(drawn):
        image_id, of_image = images[number % len(images)], number // len(images)
        yield {
            "image_id": image_id,
            "question": texts[text],
            "question_id": 1000 * image_id + of_image,
        }


def draw_annotations(
    questions: Sequence[Mapping[str, Any]], generator: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Ten answers each, about half of which are the same."""
    count = len(questions)
    answers = draw_frequent(NUM_ANSWERS, (count, NUM_ANNOTATORS), generator)
    agrees = generator.random((count, NUM_ANNOTATORS)) < 0.5
    answers = np.where(agrees, answers[:, :1], answers)
    types = generator.integers(NUM_TYPES, size=count).tolist()
    for question, given, number in zip(questions, answers.tolist(), types, strict=True):
        yield {
            "question_type": f"type {number}",
            "multiple_choice_answer": f"answer {given[0]}",
            "answers": [
                {"answer": f"answer {each}", "answer_confidence": "yes", "answer_id": n}
                for n, each in enumerate(given, 1)
            ],
            "image_id": question["image_id"],
            "answer_type": ("yes/no", "number", "other")[number % 3],
            "question_id": question["question_id"],
        }


def draw_frequent(most: int, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Numbers below `most`, n about as often as 1 / n."""
    return (most ** generator.random(shape)).astype(np.int64)


def write_entries(
    root: Path, template: str, split: str, key: str, entries: Iterator[Any] | Sequence[Any]
) -> None:
    """An official file, written piece by piece."""
    with open(root / VQA_V2.fill(template, split), "w", encoding="utf-8") as file:
        file.write(f'{{"data_subtype": "{VQA_V2.question_subtype(split)}", "{key}": [')
        for number, entry in enumerate(entries):
            file.write((", " if number else "") + json.dumps(entry))
        file.write("]}")


def list_commands(root: Path, runs: Path) -> dict[str, list[str]]:
    """What is measured, in this order: a run's first step, and what is done with a model."""
    data = ["data=custom", f"data.root={root}"]
    train = [*data, *SETTINGS, f"runs={runs}", "figures=0", "tracker=[]", "runtime.limit_batches=1"]
    files = {
        "questions": root / VQA_V2.fill(VQA_V2.questions, "val"),
        "annotations": root / VQA_V2.fill(VQA_V2.annotations, "val"),
        "results": runs / "a/evaluate/vqa_OpenEnded_mscoco_val2014_a_results.json",
    }
    trained = [f"checkpoint={runs / 'a'}", *SETTINGS]
    return {
        "data": ["scripts.data", *data],
        "doctor": ["scripts.doctor", *data],
        "start of training": ["scripts.train", *train, "name=a", "optim.epochs=1"],
        "evaluate": ["scripts.evaluate", *trained],
        "lambda": ["scripts.select_lambda", *trained],
        "export": ["scripts.export", *trained],
        "score": ["scripts.score", *(f"{name}={path}" for name, path in files.items())],
    }


def run_command(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of a command."""
    start = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed: {printed[-1000:]}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def measure_size(size: float) -> dict[str, tuple[float, float]]:
    """Seconds and peak megabytes of every command on data of this size."""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        root, runs = Path(name) / "data", Path(name) / "runs"
        root.mkdir()
        write_dataset(root, size)
        found = {}
        for command, arguments in list_commands(root, runs).items():
            found[command] = run_command(arguments)
            seconds, _ = found[command]
            print(f"{size:g} of VQA-v2, {command}: {seconds:.1f} s", flush=True)
        return found


def measure(sizes: Sequence[float] = SIZES) -> Part:
    """Every command at every size, and how time and memory grow."""
    found = {size: measure_size(size) for size in sizes}
    details = [
        Measurement(f"{size:g} of VQA-v2, {name}", (value,), unit)
        for size, commands in found.items()
        for name, values in commands.items()
        for value, unit in zip(values, ("s", "MB"), strict=True)
    ]
    rows = []
    if len(sizes) > 1:
        against = f"number of questions, {sizes[0]:g} to {sizes[-1]:g} of VQA-v2: exponent"
        for name in found[sizes[0]]:
            for what, column in (("time", 0), ("peak memory", 1)):
                exponent = fit_exponent(sizes, [found[size][name][column] for size in sizes])
                rows.append(Row(f"{what} of {name}", against, "≤ 1.1", (exponent,)))
    if 1.0 in found:
        values = found[1.0]["start of training"][:1]
        rows.append(Row("start of training", "seconds", f"≤ {LIMIT}", values))
    return Part(rows, details)
