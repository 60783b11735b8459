"""A user-defined folder: what it has, what it lacks, and what to run next."""

from shlex import quote

import numpy as np

from data.features.reader import FeatureStore
from data.vqa.data_folder import DataFolder, NoQuestionsError


class Inventory:
    """What a data folder holds, as lines to print, and what is still to do."""

    def __init__(self, folder: DataFolder) -> None:
        self.folder = folder
        self.found: list[str] = []
        self.lacking: list[str] = []

    def add_split(self, split: str) -> None:
        """Questions, annotations, images and features; files that contradict each other raise."""
        folder, is_annotated = self.folder, split in self.folder.layout.annotated
        path = folder.questions(split)
        if not path.is_file():
            if is_annotated:
                self.lacking.append(
                    f"{split}: {path.name} is missing; no model can be trained or evaluated on it"
                )
            return
        try:
            questions = folder.read_questions(split)
        except NoQuestionsError:
            self.lacking.append(f"{split}: {path.name} holds no questions")
            return
        image_ids = np.unique(questions.image_ids)
        parts = [f"{len(questions):,} questions about {len(image_ids):,} images"]
        if folder.annotations(split).is_file():
            folder.match_annotations(split)
            parts.append("annotations")
        elif is_annotated:
            name = folder.annotations(split).name
            self.lacking.append(f"{split}: {name} is missing; results cannot be scored")
        num_images = len(image_ids) - len(list_absent(folder, split, image_ids))
        parts.append(f"{num_images:,} image files")
        if folder.store(split).is_file():
            parts.append(self.describe_store(split, image_ids))
        else:
            self.lacking.append(explain_store(folder, split, image_ids))
        self.found.append(f"{split}: {', '.join(parts)}")

    def describe_store(self, split: str, image_ids: np.ndarray) -> str:
        """What a feature store holds; note the images it lacks."""
        with FeatureStore(self.folder.store(split)) as store:
            absent = image_ids[~np.isin(image_ids, store.image_ids)]
            kind = store.manifest
            described = f"features ({kind.backbone}, {kind.num_features} per {kind.unit})"
        if len(absent):
            self.lacking.append(
                f"{split}: {store.path} lacks {len(absent):,} images, such as {absent[0]}; "
                "make it again from all of them, or remove their questions"
            )
        return described

    def compare_stores(self) -> None:
        """Note a store whose features are of another kind than the first one's."""
        manifests = {}
        for path in map(self.folder.store, self.folder.layout.subtypes):
            if path.is_file():
                with FeatureStore(path) as store:
                    manifests[path] = store.manifest
        for path, manifest in manifests.items():
            first, expected = next(iter(manifests.items()))
            try:
                manifest.check_alike(path, expected, first)
            except ValueError as error:
                self.lacking.append(str(error))


def take_inventory(folder: DataFolder) -> Inventory:
    """Check the questions, annotations, images and features of every split of a folder."""
    if not folder.root.is_dir():
        raise FileNotFoundError(f"{folder.root} does not exist; give your folder with data.root=…")
    inventory = Inventory(folder)
    for split in folder.layout.subtypes:
        inventory.add_split(split)
    inventory.compare_stores()
    return inventory


def list_absent(folder: DataFolder, split: str, image_ids: np.ndarray) -> list[int]:
    """The images that have no file."""
    place = folder.image_folder(split)
    names = {path.name for path in place.iterdir()} if place.is_dir() else set()
    numbered = folder.numbered_images(split)
    return [
        image_id
        for image_id in image_ids.tolist()
        if image_id not in numbered and names.isdisjoint(folder.image_names(split, image_id))
    ]


def explain_store(folder: DataFolder, split: str, image_ids: np.ndarray) -> str:
    """How to make the feature store that a split lacks, of the images that its questions name."""
    store, images = folder.store(split), folder.image_folder(split)
    absent = list_absent(folder, split, image_ids)
    if len(absent) == len(image_ids):
        how = (
            f"put images into {images} and run make extract, or run make features "
            f"SOURCE=<folder of .pth or .npz files of {folder.layout.fill('{images}', split)}> "
            f"OUT={quote(str(store))}"
        )
    else:
        paths = f"IMAGES={quote(str(images))} OUT={quote(str(store))}"
        how = f"make extract {paths} BACKBONE=<name, listed in docs/data.md>"
        if absent:
            how = (
                f"{images} lacks {len(absent):,} images, such as {absent[0]}: add them or remove "
                f"their questions, then {how}"
            )
    return f"{split}: {store} is missing; {how}"
