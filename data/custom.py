"""A folder of one's own: what it has, what it lacks, and what to run next."""

from dataclasses import dataclass, field

import numpy as np

from data.questions import Questions, load_annotations, load_questions, match_annotations
from data.splits import SUBTYPES, Folder, image_names, image_subtype
from data.store import FeatureStore


@dataclass
class Inventory:
    """What a data folder holds, as lines to print, and what is still to do."""

    found: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)


def take_inventory(folder: Folder) -> Inventory:
    """Check the questions, annotations, images and features of every split of a folder."""
    if not folder.root.is_dir():
        raise FileNotFoundError(f"{folder.root} does not exist; give your folder with data.root=…")
    inventory = Inventory()
    for split in SUBTYPES:
        path = folder.questions(split)
        if not path.is_file():
            if split == "val":
                inventory.lacking.append(f"val: {path.name} is missing; train cannot be evaluated")
            continue
        questions = load_questions([path])
        inspect_split(folder, split, questions, inventory)
    compare_stores(folder, inventory)
    return inventory


def compare_stores(folder: Folder, inventory: Inventory) -> None:
    """Note a store whose features are of another kind than the first one's."""
    paths = [path for path in map(folder.store, ("train", "val", "test")) if path.is_file()]
    manifests = []
    for path in paths:
        with FeatureStore(path) as store:
            manifests.append(store.manifest)
    for path, manifest in zip(paths[1:], manifests[1:], strict=True):
        try:
            manifest.refuse_unlike(path, manifests[0], paths[0])
        except ValueError as error:
            inventory.lacking.append(str(error))


def inspect_split(folder: Folder, split: str, questions: Questions, inventory: Inventory) -> None:
    """Add one split to the inventory; files that contradict each other raise."""
    if not len(questions):
        inventory.lacking.append(f"{split}: {folder.questions(split).name} holds no questions")
    image_ids = np.unique(questions.image_ids)
    parts = [f"{len(questions):,} questions about {len(image_ids):,} images"]
    if folder.annotations(split).is_file():
        match_annotations(questions, load_annotations([folder.annotations(split)]))
        parts.append("annotations")
    elif split == "val":
        inventory.lacking.append(
            f"val: {folder.annotations(split).name} is missing; results cannot be scored"
        )
    num_images = count_images(folder, split, image_ids)
    parts.append(f"{num_images:,} image files")
    if folder.store(split).is_file():
        parts.append(inspect_store(folder, split, image_ids, inventory))
    else:
        inventory.lacking.append(explain_store(folder, split, num_images))
    inventory.found.append(f"{split}: {', '.join(parts)}")


def count_images(folder: Folder, split: str, image_ids: np.ndarray) -> int:
    """How many of the images have a file."""
    place = folder.image_folder(split)
    names = {path.name for path in place.iterdir()} if place.is_dir() else set()
    return sum(
        any(name in names for name in image_names(split, image_id))
        for image_id in image_ids.tolist()
    )


def inspect_store(folder: Folder, split: str, image_ids: np.ndarray, inventory: Inventory) -> str:
    """Say what a feature store holds; note the images it lacks."""
    with FeatureStore(folder.store(split)) as store:
        absent = image_ids[~np.isin(image_ids, store.image_ids)]
        described = f"features ({store.manifest.backbone}, {store.num_features} a cell)"
    if len(absent):
        inventory.lacking.append(
            f"{split}: {folder.store(split)} lacks {len(absent):,} images, such as {absent[0]}; "
            "make it again from all of them"
        )
    return described


def explain_store(folder: Folder, split: str, num_images: int) -> str:
    """How to make the feature store that a split lacks."""
    store = folder.store(split)
    if num_images:
        how = f"make extract IMAGES={folder.image_folder(split)} OUT={store}"
    else:
        how = (
            f"put images into {folder.image_folder(split)} and run make extract, or run "
            f"make features SOURCE=<folder of .pth files of {image_subtype(split)}> OUT={store}"
        )
    return f"{split}: {store} is missing; {how}"
