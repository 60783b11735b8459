"""Splits and where the official files of a data folder lie."""

from dataclasses import dataclass
from pathlib import Path

# split -> (subtype in the names of question files, subtype of its images and features)
SUBTYPES = {
    "train": ("train2014", "train2014"),
    "val": ("val2014", "val2014"),
    "test": ("test2015", "test2015"),
    "test-dev": ("test-dev2015", "test2015"),  # a part of test: the same images
}


def split_names(split: str) -> tuple[str, ...]:
    """The single splits of a combination, in official order: "val+train" -> ("train", "val")."""
    names = [name.strip() for name in split.split("+")]
    for name in names:
        check_name(name)
    if len(set(names)) < len(names):
        raise ValueError(f"split '{split}' names a part twice; name each part once")
    if {"test", "test-dev"} <= set(names):
        raise ValueError(f"split '{split}' holds questions twice: test-dev is a part of test")
    return tuple(name for name in SUBTYPES if name in names)


def check_name(name: str) -> None:
    """Refuse a name that is not a single split."""
    if name not in SUBTYPES:
        known = ", ".join(SUBTYPES)
        raise ValueError(f"there is no split '{name}'; choose from {known}, or join some with '+'")


def overlap(trained: str, evaluated: str) -> tuple[str, ...]:
    """The parts of `evaluated` whose questions a model trained on `trained` has seen."""
    seen = set(split_names(trained))
    if seen & {"test", "test-dev"}:  # they share questions
        seen |= {"test", "test-dev"}
    return tuple(name for name in split_names(evaluated) if name in seen)


@dataclass(frozen=True)
class Folder:
    """A data folder with official file names; each method takes one split, not a combination."""

    root: Path

    def __init__(self, root: str | Path) -> None:
        object.__setattr__(self, "root", Path(root))

    def questions(self, split: str) -> Path:
        """The question file of one split."""
        return self.root / f"v2_OpenEnded_mscoco_{question_subtype(split)}_questions.json"

    def annotations(self, split: str) -> Path:
        """The annotation file of one split; the official test splits have none."""
        return self.root / f"v2_mscoco_{question_subtype(split)}_annotations.json"

    def question_files(self, split: str) -> list[Path]:
        """The question files of a split or of a combination such as "train+val"."""
        return [self.questions(name) for name in split_names(split)]

    def annotation_files(self, split: str) -> list[Path]:
        """The annotation files of a split or of a combination such as "train+val"."""
        return [self.annotations(name) for name in split_names(split)]

    def v1_questions(self, split: str) -> Path:
        """The VQA v1 question file that VQA-HAT's question ids belong to."""
        return self.root / "v1" / f"OpenEnded_mscoco_{question_subtype(split)}_questions.json"

    def store(self, split: str) -> Path:
        """The feature store of one split."""
        return self.root / "features" / f"{image_subtype(split)}.h5"

    def stores(self, split: str) -> list[Path]:
        """The feature stores of a split or of a combination such as "train+val"."""
        return [self.store(name) for name in split_names(split)]

    def image_folder(self, split: str) -> Path:
        """The folder that holds the images of one split."""
        return self.root / "images" / image_subtype(split)

    def images(self, split: str, image_id: int) -> Path:
        """The file of one image: COCO's name, or plain `<image_id>`, as .jpg or .png."""
        folder = self.image_folder(split)
        names = image_names(split, image_id)
        for name in names:
            if (folder / name).is_file():
                return folder / name
        raise FileNotFoundError(
            f"{folder} holds no image {image_id}; expected a file named {' or '.join(names)}"
        )

    def human_maps(self, split: str) -> Path:
        """The folder of human attention maps of one split."""
        check_name(split)
        return self.root / "human_attention" / split

    @property
    def vocabulary(self) -> Path:
        """The question words of this folder."""
        return self.root / "vocabulary.json"

    @property
    def answers(self) -> Path:
        """The answer list of this folder."""
        return self.root / "answers.json"


def question_subtype(split: str) -> str:
    """The name of a split inside the names of its question and annotation files."""
    check_name(split)
    return SUBTYPES[split][0]


def image_subtype(split: str) -> str:
    """The name of the folder of a split's images and features."""
    check_name(split)
    return SUBTYPES[split][1]


def image_names(split: str, image_id: int) -> list[str]:
    """The file names an image may have, COCO's own first."""
    coco = f"COCO_{image_subtype(split)}_{image_id:012d}"
    return [f"{stem}.{suffix}" for stem in (coco, str(image_id)) for suffix in ("jpg", "png")]
