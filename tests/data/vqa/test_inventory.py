"""A user-defined folder: what is found, what is lacking, what contradicts."""

from pathlib import Path

import numpy as np
import pytest

from data.features.writer import StoreWriter
from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder
from data.vqa.inventory import take_inventory
from tests.data.sample_folder import add_images, fill_folder
from tests.data.vqa.official_files import make_question, real_folder

IDS = {"train": range(1000, 1020), "val": range(2000, 2020), "test": range(3000, 3020)}


def write_stores(folder: DataFolder, ids: dict[str, range] = IDS, val: str = "patch") -> None:
    """Feature stores for these images, `val` from another backbone."""
    for split in folder.layout.subtypes:
        if not folder.has_questions(split):
            continue
        folder.store(split).parent.mkdir(exist_ok=True)
        sizes = dict.fromkeys(ids[split], (2, 3))
        backbone = val if split == "val" else "patch"
        with StoreWriter(folder.store(split), sizes, 5, source="test", backbone=backbone) as store:
            for image_id in ids[split]:
                store.write(image_id, np.ones((6, 5), dtype=np.float16))


def test_images_without_features_lead_to_extract(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    add_images(folder, "train", range(1000, 1015))
    inventory = take_inventory(folder)
    assert inventory.found[0] == (
        "train: 20 questions about 20 images, annotations, 15 image files"
    )
    train, val = inventory.lacking
    lacks = f"{folder.image_folder('train')} lacks 5 images, such as 1015: add them or remove"
    assert f"features/train2014.h5 is missing; {lacks}" in train
    assert "their questions, then make extract IMAGES=" in train
    assert "make features SOURCE=<folder of .pth or .npz files of val2014>" in val


def test_all_images_without_features_need_nothing_but_extract(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    add_images(folder, "train", range(1000, 1020))
    line = take_inventory(folder).lacking[0]
    assert "train2014.h5 is missing; make extract IMAGES=" in line
    assert "BACKBONE=<name" in line  # patch, the default, knows nothing of photographs


def test_images_are_counted_as_extract_reads_their_names(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    add_images(folder, "train", range(1000, 1003))
    place = folder.image_folder("train")
    (place / "1000.png").rename(place / "1000.JPG")
    (place / "1001.png").rename(place / "01001.jpeg")
    (place / "cover.jpg").touch()
    assert "3 image files" in take_inventory(folder).found[0]


def test_a_complete_folder_lacks_nothing(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path, splits=("train", "val", "test"))
    write_stores(folder)
    inventory = take_inventory(folder)
    assert inventory.lacking == []
    assert [line.split(":")[0] for line in inventory.found] == ["train", "val", "test"]
    assert "features (patch, 5 per cell)" in inventory.found[0]


def test_a_store_that_lacks_an_image_is_noted(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    write_stores(folder, {**IDS, "train": range(1000, 1019)})
    (lacking,) = take_inventory(folder).lacking
    assert "lacks 1 images, such as 1019" in lacking
    assert lacking.endswith("or remove their questions")


def test_stores_of_different_backbones_are_noted(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    write_stores(folder, val="R-50")
    (lacking,) = take_inventory(folder).lacking
    assert f"{folder.store('val')} holds 5 features per cell of backbone R-50" in lacking
    assert f"but {folder.store('train')} 5 features per cell of backbone patch" in lacking


def test_a_split_without_a_question_or_without_its_file_is_noted(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    write_stores(folder)
    write_json(folder.questions("val"), {"questions": []})
    write_json(folder.annotations("val"), {"annotations": []})
    (lacking,) = take_inventory(folder).lacking
    assert lacking == "val: v2_OpenEnded_mscoco_val2014_questions.json holds no questions"
    folder.questions("val").unlink()
    (lacking,) = take_inventory(folder).lacking
    assert "v2_OpenEnded_mscoco_val2014_questions.json is missing" in lacking


def test_questions_that_contradict_their_annotations_raise(tmp_path: Path) -> None:
    folder = fill_folder(tmp_path)
    write_json(folder.questions("val"), {"questions": [make_question(5)]})
    with pytest.raises(ValueError, match="have no question"):
        take_inventory(folder)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        take_inventory(DataFolder(tmp_path / "nowhere"))


@pytest.mark.real
def test_a_piece_of_real_vqa_v2_is_a_custom_folder() -> None:
    inventory = take_inventory(DataFolder(real_folder()))
    assert [line.split(":")[0] for line in inventory.found] == ["train", "val"]
    assert all("annotations" in line for line in inventory.found)
    assert all(" 0 image files" not in line for line in inventory.found)
