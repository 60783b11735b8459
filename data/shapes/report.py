"""What the dataset holds, and what predictors reach that see only the question or the image."""

from collections import Counter, defaultdict

import numpy as np

from data.features.reader import FeatureStore
from data.io.atomic_files import read_json
from data.text.answer_list import AnswerList
from data.vqa.data_folder import DataFolder
from data.vqa.question_only import (
    guess_by_text,
    guess_by_type,
    load_annotated,
    majority,
    majority_by,
    score_answers,
)
from data.vqa.questions import Annotation

NUM_NEIGHBOURS = 25
CEILING = "all right answers"


def describe_dataset(folder: DataFolder) -> str:
    """Sizes, templates, answers, and the share of questions about several far-apart objects."""
    questions = read_json(folder.metadata)["questions"]
    several = sum(each["far_apart"] for each in questions.values())
    templates = Counter(each["template"] for each in questions.values())
    lines = []
    for split in folder.layout.subtypes:
        asked = folder.read_questions(split)
        num_images = len(set(asked.image_ids))
        lines.append(f"{split}: {len(asked):,} questions about {num_images:,} images")
    types = Counter(each.answer_type for each in folder.read_annotations("train"))
    shares = ", ".join(f"{name} {100 * n / types.total():.0f} %" for name, n in types.items())
    lines.append(
        f"{len(templates)} templates, {len(AnswerList.load(folder.answers))} answers ({shares}); "
        f"{100 * several / len(questions):.0f} % of the questions depend on several distant objects"
    )
    return "\n".join(lines)


def measure_baselines(folder: DataFolder) -> dict[str, float]:
    """Official val accuracy, in percent, of predictors that see only question or image."""
    train, train_texts = load_annotated(folder, "train")
    val, val_texts = load_annotated(folder, "val")
    guesses = {
        "question only: most frequent answer": [majority(train)] * len(val),
        "question only: by question type": guess_by_type(train, val),
        "question only: by question string": guess_by_text(train, train_texts, val, val_texts),
        "image only: nearest pictures of train": guess_by_neighbours(folder, train, val),
        "image only: best single answer per picture (a bound)": guess_by_image(val),
        CEILING: [each.multiple_choice_answer for each in val],
    }
    return {name: score_answers(val, answers).overall for name, answers in guesses.items()}


def guess_by_image(annotations: list[Annotation]) -> list[str]:
    """For each question the answer that is right most often about its image, from val itself."""
    best = majority_by(annotations, [each.image_id for each in annotations])
    return [best[each.image_id] for each in annotations]


def guess_by_neighbours(
    folder: DataFolder, train: list[Annotation], val: list[Annotation]
) -> list[str]:
    """For each question the most frequent answer about the most similar images of train."""
    train_ids, train_features = summarise_images(folder, "train")
    val_ids, val_features = summarise_images(folder, "val")
    scale = train_features.std(axis=0) + 1e-6
    train_features, val_features = train_features / scale, val_features / scale
    distance = (train_features**2).sum(axis=1) - 2 * val_features @ train_features.T
    near = np.argpartition(distance, min(NUM_NEIGHBOURS, len(train_ids) - 1))[:, :NUM_NEIGHBOURS]
    by_image: dict[int, list[Annotation]] = defaultdict(list)
    for each in train:
        by_image[each.image_id].append(each)
    guess = {
        image_id: majority(each for row in rows for each in by_image[int(train_ids[row])])
        for image_id, rows in zip(val_ids.tolist(), near, strict=True)
    }
    return [guess[each.image_id] for each in val]


def summarise_images(folder: DataFolder, split: str) -> tuple[np.ndarray, np.ndarray]:
    """The ids (n,) and the mean and highest features (n, 2F) of the images of a split."""
    with FeatureStore(folder.store(split)) as store:
        rows = [store.rows(image_id).astype(np.float32) for image_id in store.image_ids.tolist()]
        ids = store.image_ids.copy()
    return ids, np.stack([np.concatenate([each.mean(axis=0), each.max(axis=0)]) for each in rows])
