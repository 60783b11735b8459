"""Features shaped as VQA-v2's, in made-up numbers: .pth files, a store, and questions."""

from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from data.batching.examples import Examples
from data.features.from_pth import convert_folder
from data.text.word_lists import QUESTION_LENGTH

NUM_FEATURES = 2048
NUM_ANSWERS = 3129
PER_IMAGE = 5.36  # questions
# grids of COCO images resized to 600/1000, and about how many of a hundred images have each
SHAPES = {
    (19, 25): 45, (25, 19): 14, (19, 29): 16, (29, 19): 6, (19, 28): 5, (28, 19): 2, (19, 24): 2,
    (19, 26): 2, (19, 19): 2, (19, 32): 2, (26, 19): 1, (19, 30): 1, (17, 32): 1, (14, 32): 1,
}  # fmt: skip


def draw_shapes(num_images: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    """Draw the grid of each image from VQA-v2's mix."""
    shares = np.array(list(SHAPES.values())) / sum(SHAPES.values())
    shapes = list(SHAPES)
    return [shapes[n] for n in generator.choice(len(shapes), num_images, p=shares)]


def write_files(folder: Path, num_images: int, num_features: int = NUM_FEATURES) -> None:
    """Write `<image_id>.pth` files, float32 [1, F, h, w], as grid-feats-vqa does."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    numbers = torch.from_numpy(generator.exponential(size=num_features * 608).astype(np.float32))
    shapes = draw_shapes(num_images, generator)
    for n, (height, width) in enumerate(tqdm(shapes, desc="write .pth", unit="image")):
        count = num_features * height * width
        start = 0 if count == len(numbers) else int(generator.integers(len(numbers) - count))
        features = numbers[start : start + count].reshape(1, num_features, height, width)
        torch.save(features.clone(), folder / f"{n + 1}.pth")


def write_store(folder: Path, output: Path) -> None:
    """Turn the files into a store, as a user does."""
    convert_folder(folder, output, backbone="R-50")


def ask_questions(
    num_images: int,
    per_image: float = PER_IMAGE,
    num_words: int = 15000,
    num_answers: int = NUM_ANSWERS,
) -> Examples:
    """Make as many questions as VQA-v2 has for that many images, with one to three answers each."""
    generator = np.random.default_rng(1)
    num_questions = int(num_images * per_image)
    counts = generator.integers(1, 4, num_questions)
    num_targets = int(counts.sum())
    return Examples(
        question_ids=np.arange(num_questions) * 1000,
        image_ids=generator.integers(1, num_images + 1, num_questions),
        tokens=generator.integers(0, num_words, (num_questions, QUESTION_LENGTH)),
        target_offsets=np.concatenate([[0], np.cumsum(counts)]),
        target_indices=generator.integers(0, num_answers, num_targets),
        target_scores=generator.random(num_targets, dtype=np.float32),
        has_answers=True,
    )
