"""A user-defined folder: what it has, what it lacks, and what to run next."""

from dataclasses import dataclass, field

import numpy as np

from data.features.reader import FeatureStore
from data.vqa.data_folder import DataFolder, NoQuestionsError
from data.vqa.questions import Questions, match_annotations


@dataclass
class Inventory:
    """What a data folder holds, as lines to print, and what is still to do."""

    found: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)


def take_inventory(folder: DataFolder) -> Inventory:
    """Check the questions, annotations, images and features of every split of a folder."""
    if not folder.root.is_dir():
        raise FileNotFoundError(f"{folder.root} does not exist; give your folder with data.root=…")
    inventory = Inventory()
    for split in folder.layout.subtypes:
        path = folder.questions(split)
        if not path.is_file():
            if split in folder.layout.annotated:
                inventory.lacking.append(
                    f"{split}: {path.name} is missing; no model can be trained or evaluated on it"
                )
            continue
        try:
            inspect_split(folder, split, folder.read_questions(split), inventory)
        except NoQuestionsError:
            inventory.lacking.append(f"{split}: {path.name} holds no questions")
    compare_stores(folder, inventory)
    return inventory


def compare_stores(folder: DataFolder, inventory: Inventory) -> None:
    """Note a store whose features are of another kind than the first one's."""
    manifests = {}
    for path in map(folder.store, folder.layout.subtypes):
        if path.is_file():
            with FeatureStore(path) as store:
                manifests[path] = store.manifest
    for path, manifest in manifests.items():
        first, expected = next(iter(manifests.items()))
        try:
            manifest.check_alike(path, expected, first)
        except ValueError as error:
            inventory.lacking.append(str(error))


def inspect_split(
    folder: DataFolder, split: str, questions: Questions, inventory: Inventory
) -> None:
    """Add one split to the inventory; files that contradict each other raise."""
    image_ids = np.unique(questions.image_ids)
    parts = [f"{len(questions):,} questions about {len(image_ids):,} images"]
    if folder.annotations(split).is_file():
        match_annotations(questions, folder.read_annotations(split))
        parts.append("annotations")
    elif split in folder.layout.annotated:
        inventory.lacking.append(
            f"{split}: {folder.annotations(split).name} is missing; results cannot be scored"
        )
    num_images = count_images(folder, split, image_ids)
    parts.append(f"{num_images:,} image files")
    if folder.store(split).is_file():
        parts.append(inspect_store(folder, split, image_ids, inventory))
    else:
        inventory.lacking.append(explain_store(folder, split, num_images))
    inventory.found.append(f"{split}: {', '.join(parts)}")


def count_images(folder: DataFolder, split: str, image_ids: np.ndarray) -> int:
    """How many of the images have a file."""
    place = folder.image_folder(split)
    names = {path.name for path in place.iterdir()} if place.is_dir() else set()
    return sum(
        any(name in names for name in folder.image_names(split, image_id))
        for image_id in image_ids.tolist()
    )


def inspect_store(
    folder: DataFolder, split: str, image_ids: np.ndarray, inventory: Inventory
) -> str:
    """Say what a feature store holds; note the images it lacks."""
    with FeatureStore(folder.store(split)) as store:
        absent = image_ids[~np.isin(image_ids, store.image_ids)]
        described = f"features ({store.manifest.backbone}, {store.num_features} per cell)"
    if len(absent):
        inventory.lacking.append(
            f"{split}: {folder.store(split)} lacks {len(absent):,} images, such as {absent[0]}; "
            "make it again from all of them"
        )
    return described


def explain_store(folder: DataFolder, split: str, num_images: int) -> str:
    """How to make the feature store that a split lacks."""
    store, images = folder.store(split), folder.image_folder(split)
    if num_images:
        how = f"make extract IMAGES={images} OUT={store}"
    else:
        how = (
            f"put images into {images} and run make extract, or run make features "
            f"SOURCE=<folder of .pth files of {folder.layout.fill('{images}', split)}> OUT={store}"
        )
    return f"{split}: {store} is missing; {how}"
