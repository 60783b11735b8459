"""A folder of questions, annotations, images and features: where its files are, read once each."""

from pathlib import Path

from data.io.image_names import is_image, read_image_id
from data.vqa.json_cache import read_annotations, read_questions
from data.vqa.layout import LAYOUTS, VQA_V2, Layout
from data.vqa.questions import (
    Annotation,
    Questions,
    join_annotations,
    join_questions,
    match_annotations,
    parse_annotations,
    parse_questions,
)


class NoQuestionsError(ValueError):
    """A question file without questions."""


class DataFolder:
    """The files of a dataset; what `read_…` has parsed is kept until `release`.

    `read_…`, `…_files` and `stores` also take combinations such as "train+val", the others one
    split. A command makes one folder and passes it on, so that no file is parsed twice.
    """

    def __init__(self, root: str | Path, layout: Layout | str = VQA_V2) -> None:
        self.root = Path(root)
        self.layout = LAYOUTS[layout] if isinstance(layout, str) else layout
        self._questions: dict[str, Questions] = {}
        self._annotations: dict[str, list[Annotation]] = {}
        self._numbered_images: dict[str, dict[int, Path]] = {}

    def read_questions(self, split: str) -> Questions:
        """The questions of a split; a file that is another split's, or empty, is rejected."""
        names = self.layout.split_names(split)
        for name in names:
            if name not in self._questions:
                self._questions[name] = self._parse_questions(name)
        return join_questions([self._questions[name] for name in names], self.question_files(split))

    def _parse_questions(self, name: str) -> Questions:
        path = self.questions(name)
        if not path.is_file():
            there = [other for other in self.layout.subtypes if self.has_questions(other)]
            choice = f"; choose split={' or split='.join(there)}" if there else ""
            raise FileNotFoundError(f"{path} does not exist{choice}")
        questions = read_questions(path)
        found, expected = questions.subtype, self.layout.question_subtype(name)
        if found != expected and found in {own for own, _ in self.layout.subtypes.values()}:
            raise ValueError(
                f"{path} holds the questions of {found} (its data_subtype), not of {expected}; put "
                "the right file there, or choose the split it belongs to"
            )
        if not len(questions):
            raise NoQuestionsError(f"{path} holds no questions")
        return questions

    def has_questions(self, split: str) -> bool:
        """Whether the layout has this one split, and the folder its question file."""
        return split in self.layout.subtypes and self.questions(split).is_file()

    def has_annotations(self, split: str) -> bool:
        """Whether every part of a split has annotations; the official test splits have none."""
        return all(
            name in self.layout.subtypes and self.annotations(name).is_file()
            for name in map(str.strip, split.split("+"))
        )

    def check_annotations(self, split: str) -> None:
        """Raise where a part of a split has no annotations."""
        for path in self.annotation_files(split):
            if not path.is_file():
                raise FileNotFoundError(
                    f"{path} does not exist, so split={split} has no accuracy and cannot be "
                    "trained on; `make export` writes answers for the server"
                )

    def read_annotations(self, split: str) -> list[Annotation]:
        """The annotations of a split, which must have them."""
        self.check_annotations(split)
        names = self.layout.split_names(split)
        for name in names:
            if name not in self._annotations:
                self._annotations[name] = read_annotations(self.annotations(name))
        parts = [self._annotations[name] for name in names]
        return join_annotations(parts, self.annotation_files(split))

    def match_annotations(self, split: str) -> list[Annotation]:
        """The annotations in the order of the questions; an error names the annotation files."""
        questions, annotations = self.read_questions(split), self.read_annotations(split)
        try:
            return match_annotations(questions, annotations)
        except ValueError as error:
            files = " and ".join(map(str, self.annotation_files(split)))
            raise ValueError(f"{files}: {error}") from None

    def check_extra(self, name: str) -> None:
        """Raise where the files of extra questions, such as "vg", are not there."""
        extra = self.layout.extra[name]
        for file in (extra.questions, extra.annotations):
            if not (self.root / file).is_file():
                raise FileNotFoundError(
                    f"{self.root / file} does not exist; '{name}' is {extra.origin}"
                )

    def read_extra(self, name: str) -> tuple[Questions, list[Annotation]]:
        """Extra questions to train on, and their annotations, of any number of answers each.

        They are numbered on their own: a split may have the same ids.
        """
        self.check_extra(name)
        extra = self.layout.extra[name]
        files = self.root / extra.questions, self.root / extra.annotations
        questions = join_questions([parse_questions(files[0])], files[:1])
        annotations = parse_annotations(files[1], is_scored=False)
        return questions, join_annotations([annotations], files[1:])

    def release(self, split: str) -> None:
        """Forget what was parsed of a split: VQA-v2's train takes hundreds of megabytes."""
        for name in self.layout.split_names(split):
            self._questions.pop(name, None)
            self._annotations.pop(name, None)

    def questions(self, split: str) -> Path:
        """The question file of one split."""
        return self._place(self.layout.questions, split)

    def annotations(self, split: str) -> Path:
        """The annotation file of one split; the official test splits have none."""
        return self._place(self.layout.annotations, split)

    def question_files(self, split: str) -> list[Path]:
        """The question files of a split or a combination."""
        return [self.questions(name) for name in self.layout.split_names(split)]

    def annotation_files(self, split: str) -> list[Path]:
        """The annotation files of a split or a combination."""
        return [self.annotations(name) for name in self.layout.split_names(split)]

    def v1_questions(self, split: str) -> Path:
        """The VQA v1 question file that VQA-HAT's question ids belong to."""
        return self._place(self.layout.v1_questions, split)

    def human_maps(self, split: str) -> Path:
        """The folder of human attention maps of one split."""
        return self._place(self.layout.human_maps, split)

    def store(self, split: str) -> Path:
        """The feature store of one split."""
        return self._place(self.layout.features, split)

    def stores(self, split: str) -> list[Path]:
        """The feature stores of a split or a combination."""
        return [self.store(name) for name in self.layout.split_names(split)]

    def training_stores(self, split: str) -> list[Path]:
        """The feature stores of what is trained on, extra questions included."""
        splits, extra = self.layout.divide_training(split)
        asked = {*self.layout.split_names(splits)}
        asked.update(each for name in extra for each in self.layout.extra[name].splits)
        return [self.store(name) for name in self.layout.subtypes if name in asked]

    def image_folder(self, split: str) -> Path:
        """The folder that holds the images of one split."""
        return self._place(self.layout.image_folder, split)

    def image_names(self, split: str, image_id: int) -> list[str]:
        """The file names an image may have, the official one first."""
        return [self.layout.fill(name, split, image_id) for name in self.layout.image_names]

    def image(self, split: str, image_id: int) -> Path:
        """The file of one image, under any of its names."""
        folder = self.image_folder(split)
        names = self.image_names(split, image_id)
        for name in names:
            if (folder / name).is_file():
                return folder / name
        if image_id in self.numbered_images(split):
            return self.numbered_images(split)[image_id]
        raise FileNotFoundError(
            f"{folder} holds no image {image_id}; expected a file named {' or '.join(names)}"
        )

    def numbered_images(self, split: str) -> dict[int, Path]:
        """Image files by id as `make extract` reads their names: also 1.JPG, 0042.jpeg."""
        if split not in self._numbered_images:
            folder = self.image_folder(split)
            files = filter(is_image, sorted(folder.iterdir()) if folder.is_dir() else [])
            by_id = ((read_image_id(path), path) for path in files)
            self._numbered_images[split] = {n: path for n, path in by_id if n is not None}
        return self._numbered_images[split]

    @property
    def vocabulary(self) -> Path:
        """The question words of this folder."""
        return self.root / self.layout.vocabulary

    @property
    def answers(self) -> Path:
        """The answer list of this folder."""
        return self.root / self.layout.answers

    @property
    def metadata(self) -> Path:
        """What a drawn dataset knows of its own questions; other datasets have no such file."""
        return self.root / self.layout.metadata

    def _place(self, template: str, split: str) -> Path:
        return self.root / self.layout.fill(template, split)
