"""Making the `shapes` dataset: a whole data folder in the official formats, or none."""

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.backbones.patch.descriptor import CELL, NUM_FEATURES
from data.features.writer import StoreWriter
from data.io.atomic_files import read_json, synchronise, write_json
from data.io.locks import FileLock
from data.shapes.official import AskedScene, v1_id, write_metadata, write_split
from data.shapes.workers import Run, draw_part, make_maps, make_picture, start_workers
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder

VERSION = 4  # raise it when the same seed gives other files
MARK = "shapes.json"  # written last: a folder that has it is complete
CHUNK = 16  # images sent to a worker at a time
FIRST_IMAGE = {"train": 1, "val": 100_001, "test": 200_001}
PART = 1000  # pairs drawn by one worker
SCENES, ANSWERS = 0, 1  # streams of random numbers of a split


@dataclass(frozen=True)
class Sizes:
    """Pairs of twin scenes in each split, and the val questions that get human maps."""

    train: int = 2000
    val: int = 220
    test: int = 220
    human: int = 600


def build_shapes(
    root: Path,
    seed: int = 0,
    sizes: Sizes | None = None,
    num_workers: int = 2,
    force: bool = False,
) -> bool:
    """Make the dataset at `root`; False when the same one is there already."""
    if seed < 0:
        raise ValueError(f"seed is {seed}, expected 0 or more")
    if num_workers < 1:
        raise ValueError(f"num_workers is {num_workers}, expected at least 1")
    # where a link points to: the folder is replaced by renaming, and the link is to stay
    root, sizes = Path(os.path.realpath(root)), sizes or Sizes()
    pairs = [sizes.train, sizes.val, sizes.test]
    mark = {"version": VERSION, "seed": seed, "pairs": pairs, "human": sizes.human}
    if is_there(root, mark, force):
        return False
    if Path.cwd().is_relative_to(root):  # it is renamed when all is done
        raise ValueError(f"{root} is the folder this runs in; name one inside it with data.root=…")
    with claim(root.parent / f".{root.name}.partial") as partial:
        fill(DataFolder(partial), seed, sizes, num_workers)
        write_json(partial / MARK, mark)
        put_in_place(partial, root)
    return True


def is_there(root: Path, mark: dict[str, object], force: bool) -> bool:
    """Whether `root` holds the dataset asked for; nothing else is ever overwritten unasked."""
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return False
    if not (root / MARK).is_file():
        raise ValueError(
            f"{root} holds other files and no {MARK}; give another folder with data.root=…"
        )
    if force:
        return False
    found = read_json(root / MARK)
    if found != mark:
        raise ValueError(
            f"{root} was made with {found}, not with {mark}; give another folder with data.root=… "
            "or make it again with data.force=true"
        )
    return True


@contextlib.contextmanager
def claim(partial: Path) -> Iterator[Path]:
    """An emptied folder that no other process fills; what is still in it at the end is removed."""
    partial.mkdir(parents=True, exist_ok=True)
    with FileLock(partial, f"another run is filling {partial}; wait for it to end"):
        try:
            for entry in partial.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            yield partial
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def put_in_place(partial: Path, root: Path) -> None:
    """Rename the finished folder; an older one at `root` goes only then."""
    old = root.with_name(f".{root.name}.old")
    if old.is_symlink():  # which rmtree leaves, and no folder is renamed to
        old.unlink()
    shutil.rmtree(old, ignore_errors=True)
    if root.exists():
        os.rename(root, old)
    os.rename(partial, root)
    synchronise(root.parent)
    shutil.rmtree(old, ignore_errors=True)


def fill(folder: DataFolder, seed: int, sizes: Sizes, num_workers: int) -> None:
    """Write every file of the dataset."""
    everything: list[AskedScene] = []
    with start_workers(num_workers) as run:
        drawn = draw_splits(seed, sizes, run)
        for number, (split, asked) in enumerate(drawn.items()):
            write_split(folder, split, asked, np.random.default_rng([seed, number, ANSWERS]))
            write_pictures(folder, split, asked, run)
            if split == "val":
                write_human_maps(folder, asked, seed, sizes.human, run)
            everything += asked
    write_metadata(folder.metadata, everything)
    prepare_words(folder)


def draw_splits(seed: int, sizes: Sizes, run: Run) -> dict[str, list[AskedScene]]:
    """The scenes and questions of every split, drawn in parts that are balanced each by itself."""
    jobs = [
        (split, (seed, number, SCENES, first), min(PART, getattr(sizes, split) - first))
        for number, split in enumerate(FIRST_IMAGE)
        for first in range(0, getattr(sizes, split), PART)
    ]
    drawn: dict[str, list[AskedScene]] = {split: [] for split in FIRST_IMAGE}
    parts = run(draw_part, [job[1:] for job in jobs], 1)
    bar = tqdm(parts, desc="scenes and questions", total=len(jobs), unit="part")
    for (split, _, _), part in zip(jobs, bar, strict=True):
        for each in part:
            image_id = FIRST_IMAGE[split] + len(drawn[split])
            drawn[split].append(AskedScene(image_id, *each))
    return drawn


def write_pictures(folder: DataFolder, split: str, asked: list[AskedScene], run: Run) -> None:
    """Render the scenes of a split and store the description of their patches."""
    pictures = folder.image_folder(split)
    pictures.mkdir(parents=True)
    folder.store(split).parent.mkdir(exist_ok=True)
    sizes = {each.image_id: (each.scene.height, each.scene.width) for each in asked}
    jobs = [
        (each.scene, pictures / folder.image_names(split, each.image_id)[0].replace(".jpg", ".png"))
        for each in asked
    ]
    with StoreWriter(
        folder.store(split),
        sizes,
        NUM_FEATURES,
        source=f"shapes {split}",
        backbone="patch",
        stride=CELL,
    ) as store:
        rows = tqdm(
            run(make_picture, jobs, CHUNK), desc=f"{split} images", total=len(jobs), unit="image"
        )
        for each, features in zip(asked, rows, strict=True):
            store.write(each.image_id, features)


def write_human_maps(
    folder: DataFolder, asked: list[AskedScene], seed: int, number: int, run: Run
) -> None:
    """Maps for the first `number` val questions that depend on an object, named by VQA v1 ids."""
    maps = folder.human_maps("val")
    maps.mkdir(parents=True)
    jobs_of_all = (
        (each.scene, question.things, maps / str(v1_id(question_id)), (seed, question_id))
        for each in asked
        for question_id, question in each.number()
        if question.things
    )
    jobs = list(itertools.islice(jobs_of_all, number))
    for _ in tqdm(run(make_maps, jobs, CHUNK), desc="human maps", total=len(jobs), unit="question"):
        pass
