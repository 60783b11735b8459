"""The vocabulary and the answer list of a data folder, built once and then kept."""

from dataclasses import dataclass
from typing import Any

from data.answers import AnswerList, check_threshold
from data.questions import load_annotations, load_questions, match_annotations
from data.splits import Folder
from data.vocabulary import Vocabulary


@dataclass(frozen=True)
class Words:
    """What a folder's questions and answers are made of, and whether it was built just now."""

    vocabulary: Vocabulary
    answers: AnswerList
    built: bool = False

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint, inside which the words travel."""
        return {"vocabulary": self.vocabulary.state(), "answers": self.answers.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any], source: str) -> "Words":
        """The words that a checkpoint carries."""
        if "vocabulary" not in state or "answers" not in state:
            raise ValueError(f"{source} carries no vocabulary and answers")
        return cls(
            Vocabulary.from_state(state["vocabulary"], source),
            AnswerList.from_state(state["answers"], source),
        )

    def refuse_other(self, other: "Words", owner: str, source: str) -> None:
        """Raise when `other`, which belongs to `owner`, are not these words of `source`."""
        self.vocabulary.refuse_other(other.vocabulary.fingerprint, owner, source)
        self.answers.refuse_other(other.answers.fingerprint, owner, source)


def annotated_splits(folder: Folder) -> str:
    """The splits of a folder that have questions and annotations, such as "train+val"."""
    names = [
        name
        for name in ("train", "val")
        if folder.questions(name).is_file() and folder.annotations(name).is_file()
    ]
    if "train" not in names:
        raise FileNotFoundError(
            f"{folder.root} needs {folder.questions('train').name} and "
            f"{folder.annotations('train').name} (see docs/data.md)"
        )
    return "+".join(names)


def build_words(folder: Folder, more_than: int = 8) -> Words:
    """The words of train and val, written nowhere."""
    splits = annotated_splits(folder)
    questions = load_questions(folder.question_files(splits))
    annotations = match_annotations(questions, load_annotations(folder.annotation_files(splits)))
    answers = AnswerList.build(annotations, more_than=more_than)
    return Words(Vocabulary.build(questions.texts), answers, True)


def prepare_words(folder: Folder, more_than: int = 8) -> Words:
    """Build vocabulary.json and answers.json from train and val; what is there already stays."""
    check_threshold(more_than)
    there = [path.is_file() for path in (folder.vocabulary, folder.answers)]
    if all(there):
        return Words(Vocabulary.load(folder.vocabulary), AnswerList.load(folder.answers), False)
    # both are computed before either is written: an error leaves nothing behind
    built = build_words(folder, more_than)
    vocabulary, answers = built.vocabulary, built.answers
    if there[0]:
        vocabulary = Vocabulary.load(folder.vocabulary)
    else:
        vocabulary.save(folder.vocabulary)
    if there[1]:
        answers = AnswerList.load(folder.answers)
    else:
        answers.save(folder.answers)
    return Words(vocabulary, answers, True)
