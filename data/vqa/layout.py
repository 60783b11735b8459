"""Which files a data folder holds, by name: VQA-v2's names, or those of a user-defined dataset."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from data.registry import Registry

# split -> (its name inside the names of question files, that of its images and features)
VQA_V2_SUBTYPES = {
    "train": ("train2014", "train2014"),
    "val": ("val2014", "val2014"),
    "test": ("test2015", "test2015"),
    "test-dev": ("test-dev2015", "test2015"),  # a part of test: the same images
}
VQA_V2_PARTS = {"test-dev": "test"}


@dataclass(frozen=True)
class ExtraQuestions:
    """Questions to train on beside a split's, about images of these splits: two files."""

    questions: str
    annotations: str
    splits: tuple[str, ...]
    origin: str  # what they are and where they come from, for who has not got them


VISUAL_GENOME = ExtraQuestions(
    "VG_questions.json",
    "VG_annotations.json",
    ("train", "val"),
    "Visual Genome's questions as MCAN's authors distribute them: github.com/MILVLG/mcan-vqa links "
    "to both files",
)


@dataclass(frozen=True)
class Layout:
    """The splits of a dataset, and the paths inside its data folder as templates.

    {split} becomes "val", {subtype} "val2014", {images} the subtype of the images, which two splits
    may share, and {image_id} a number. The defaults are VQA-v2's names, COCO's for the image files.
    """

    # the splits there are, each with its {subtype} and {images}
    subtypes: Mapping[str, tuple[str, str]] = field(default_factory=VQA_V2_SUBTYPES.copy)
    # those that must have annotations: words are built from them, and the first is trained on
    annotated: tuple[str, ...] = ("train", "val")
    # what a train_split may add to splits, as "train+val+vg" does
    extra: Mapping[str, ExtraQuestions] = field(default_factory=dict)
    # a split whose questions another split has too: {part: whole}
    parts: Mapping[str, str] = field(default_factory=VQA_V2_PARTS.copy)
    questions: str = "v2_OpenEnded_mscoco_{subtype}_questions.json"
    annotations: str = "v2_mscoco_{subtype}_annotations.json"
    v1_questions: str = "v1/OpenEnded_mscoco_{subtype}_questions.json"
    human_maps: str = "human_attention/{split}"
    features: str = "features/{images}.h5"
    image_folder: str = "images/{images}"
    image_names: tuple[str, ...] = (
        "COCO_{images}_{image_id:012d}.jpg",
        "COCO_{images}_{image_id:012d}.png",
        "{image_id}.jpg",
        "{image_id}.png",
    )
    vocabulary: str = "vocabulary.json"
    answers: str = "answers.json"
    metadata: str = "shapes_metadata.json"

    def __post_init__(self) -> None:
        if not self.annotated_splits:
            raise ValueError(
                f"a layout of the splits {', '.join(self.subtypes)} must say which of them have "
                f"annotations; annotated={self.annotated} names none of them"
            )

    @property
    def annotated_splits(self) -> tuple[str, ...]:
        """The splits there are that must have annotations; the first is trained on."""
        return tuple(name for name in self.annotated if name in self.subtypes)

    def check_split(self, split: str) -> str:
        """Give back the name of a single split; raise on any other."""
        if split in self.extra:
            raise ValueError(
                f"'{split}' is for training alone, beside a split: train_split=train+{split}"
            )
        if split not in self.subtypes:
            known = ", ".join(self.subtypes)
            raise ValueError(
                f"there is no split '{split}'; choose from {known}, or join some with '+'"
            )
        return split

    def split_names(self, split: str) -> tuple[str, ...]:
        """The single splits of a combination in the layout's order: "val+train" -> train, val."""
        names = [self.check_split(name.strip()) for name in split.split("+")]
        if len(set(names)) < len(names):
            raise ValueError(f"split '{split}' names a part twice; name each part once")
        for part, whole in self.parts.items():
            if {part, whole} <= set(names):
                raise ValueError(
                    f"split '{split}' holds questions twice: {part} is a part of {whole}"
                )
        return tuple(name for name in self.subtypes if name in names)

    def divide_training(self, split: str) -> tuple[str, tuple[str, ...]]:
        """What is trained on: the splits, and what is added: "train+vg" -> "train", ("vg",)."""
        names = [name.strip() for name in split.split("+")]
        extra = tuple(name for name in names if name in self.extra)
        splits = "+".join(name for name in names if name not in self.extra)
        if len(set(extra)) < len(extra):
            raise ValueError(f"split '{split}' names a part twice; name each part once")
        self.split_names(splits or "+".join(extra))
        return splits, extra

    def overlap(self, trained: str, evaluated: str) -> tuple[str, ...]:
        """The parts of `evaluated` whose questions a model trained on `trained` has seen."""
        seen = {name.strip() for name in trained.split("+")}
        for pair in self.parts.items():
            if seen & set(pair):  # they share questions
                seen |= set(pair)
        return tuple(name for name in self.split_names(evaluated) if name in seen)

    def question_subtype(self, split: str) -> str:
        """The name of a split inside the names of its question and annotation files."""
        return self.subtypes[self.check_split(split)][0]

    def fill(self, template: str, split: str, image_id: int = 0) -> str:
        """The path that a template stands for."""
        subtype, images = self.subtypes[self.check_split(split)]
        return template.format(split=split, subtype=subtype, images=images, image_id=image_id)


LAYOUTS: Registry[Layout] = Registry("layout of data folders")
register_layout = LAYOUTS.register
VQA_V2 = register_layout("vqa_v2", Layout(extra={"vg": VISUAL_GENOME}))
