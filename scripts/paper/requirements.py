"""What a report needs of its data, and what it does without and says so."""

from collections.abc import Sequence

import numpy as np

from configs.schema.training import Paper
from data.vqa.data_folder import DataFolder
from data.vqa.inventory import list_absent
from figures.requirements import has_matplotlib
from mcan.training.preparation import ensure_dataset
from scripts.paper import published
from scripts.paper.runs import HEADS, Run


def check_data(runs: Sequence[Run]) -> None:
    """Raise for data that cannot be trained and validated on."""
    settings = runs[0].settings()
    if settings.data.name != "shapes":  # which the first run draws
        ensure_dataset(settings.data)
        folder = DataFolder(settings.data.root, settings.data.layout)
        for split in (folder.layout.divide_training(settings.train_split)[0], settings.val_split):
            folder.check_annotations(split)


def has_human_maps(data: DataFolder, split: str) -> bool:
    """Whether there are human attention maps of a split, and the questions they refer to."""
    if split not in data.layout.subtypes:  # several splits
        return False
    return data.v1_questions(split).is_file() and any(data.human_maps(split).glob("*.png"))


def explain_no_figures(data: DataFolder, split: str) -> str | None:
    """What is missing to draw attention over the images of a split."""
    if not has_matplotlib():
        return "matplotlib is not installed"
    for name in data.layout.split_names(split):
        image_ids = np.unique(data.read_questions(name).image_ids)
        num_missing = len(list_absent(data, name, image_ids))
        if num_missing:
            folder = data.image_folder(name)
            return f"{folder} lacks {num_missing:,} of the {len(image_ids):,} images"
    return None


def list_missing(settings: Paper, data: DataFolder, split: str) -> list[str]:
    """What the paper has and this report has not."""
    missing = [f"{head} attention: not in heads" for head in HEADS if head not in settings.heads]
    if settings.dataset in published.BESIDE:
        missing.append(
            "accuracy on test-dev and test-standard: needs a submission of `make export`"
        )
    if settings.dataset == "shapes":
        missing.append("VQA-v2 and VQA-HAT: `make paper DATA=vqa_v2`, on GPUs")
    if not has_human_maps(data, split):
        missing.append(f"human attention: {data.root} has no maps of {split}")
    why = "figures=0" if not settings.figures else explain_no_figures(data, split)
    return [*missing, f"figures: {why}"] if why else missing
