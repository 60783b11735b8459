"""Data folders with official files and a few images, for tests."""

from pathlib import Path

from PIL import Image

from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder
from tests.data.vqa.official_files import make_annotation, make_question


def fill_folder(
    root: Path, splits: tuple[str, ...] = ("train", "val"), number: int = 20, layout: str = "vqa_v2"
) -> DataFolder:
    """Write questions and annotations of some splits; answers are "red" and "blue"."""
    folder = DataFolder(root, layout)
    for place, split in enumerate(splits, 1):
        ids = range(1000 * place, 1000 * place + number)
        questions = [make_question(n, f"what color is thing {n % 3}?", image_id=n) for n in ids]
        content = {"data_subtype": folder.layout.question_subtype(split), "questions": questions}
        write_json(folder.questions(split), content)
        if not split.startswith("test"):
            colors = ("red", "blue")
            entries = [make_annotation(n, [colors[n % 2]] * 10, colors[n % 2], n) for n in ids]
            write_json(folder.annotations(split), {**content, "annotations": entries})
    return folder


def add_images(folder: DataFolder, split: str, ids: range) -> None:
    """Write a small picture for each id, under its plain name."""
    folder.image_folder(split).mkdir(parents=True, exist_ok=True)
    for image_id in ids:
        color = (255, 0, 0) if image_id % 2 == 0 else (0, 0, 255)
        Image.new("RGB", (64, 48), color).save(folder.image_folder(split) / f"{image_id}.png")
