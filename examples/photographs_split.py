"""A small dataset of photographs out of VQA-v2's train2014: the one that docs/photographs.md uses.

    .venv/bin/python -m examples.photographs_split datasets/vqa_v2 datasets/photographs

18,746 questions about 6,000 photographs to train on and 3,625 about 1,200 others to validate on, by
the ids of photographs_split.txt. The folder gets the questions and annotations in the official
format and links to the photographs; it is then used as data=custom data.root=datasets/photographs.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

from data.vqa.layout import Layout

IDS = Path(__file__).with_suffix(".txt")
SOURCE = "train2014"  # both splits come from it


def main() -> None:
    """Read all that is needed, then write the folder, whole or not at all."""
    if len(sys.argv) != 3:
        fail("usage: python -m examples.photographs_split <folder of VQA-v2> <new folder>")
    vqa_v2, folder = Path(sys.argv[1]), Path(sys.argv[2])
    if folder.exists():
        fail(f"{folder} is there already; name a new folder")
    templates = {"questions": Layout().questions, "annotations": Layout().annotations}
    contents = {kind: read_official(vqa_v2, template) for kind, template in templates.items()}
    subsets = {
        template.format(subtype=split): take_subset(contents[kind], kind, ids, split)
        for kind, template in templates.items()
        for split, ids in read_ids().items()
    }
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was interrupted
    partial.mkdir(parents=True)
    for name, subset in subsets.items():
        (partial / name).write_text(json.dumps(subset), encoding="utf-8")
    for split, ids in read_ids().items():
        num_links = link_images(vqa_v2, partial, split, {number // 1000 for number in ids})
        print(f"{split}: {len(ids):,} questions, {num_links:,} photographs found")
    partial.rename(folder)


def read_official(vqa_v2: Path, template: str) -> dict[str, Any]:
    """The file of train2014."""
    path = vqa_v2 / template.format(subtype=SOURCE)
    if not path.is_file():
        fail(f"there is no {path}; make data DATA=vqa_v2 downloads it")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def read_ids() -> dict[str, set[int]]:
    """The question ids of each split."""
    splits: dict[str, set[int]] = {}
    ids: set[int] = set()
    for line in IDS.read_text(encoding="utf-8").splitlines():
        image, is_image, numbers = line.partition(": ")
        if line.startswith("#"):
            continue
        if not is_image:
            ids = splits.setdefault(line, set())
        else:
            ids |= {1000 * int(image) + int(number) for number in numbers.split()}
    return splits


def take_subset(content: dict[str, Any], kind: str, ids: set[int], split: str) -> dict[str, Any]:
    """The entries of some questions, as the content of a file of the same format."""
    chosen = [entry for entry in content[kind] if entry["question_id"] in ids]
    if len(chosen) != len(ids):
        fail(f"{len(ids) - len(chosen)} of the {kind} are missing: these are not all of {SOURCE}")
    return {**content, "data_subtype": split, kind: chosen}


def link_images(vqa_v2: Path, folder: Path, split: str, image_ids: set[int]) -> int:
    """Links <image_id>.jpg to COCO's files, where they are there; how many."""
    images = folder / "images" / split
    images.mkdir(parents=True)
    source = (vqa_v2 / "images" / SOURCE).resolve()
    found = {n: source / f"COCO_{SOURCE}_{n:012d}.jpg" for n in image_ids}
    found = {n: path for n, path in found.items() if path.is_file()}
    for number, path in found.items():
        (images / f"{number}.jpg").symlink_to(path)
    return len(found)


def fail(sentence: str) -> NoReturn:
    """End with one sentence and exit code 2, as every command does."""
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
