"""The vocabulary and the answer list of a data folder, built once and then kept."""

from dataclasses import dataclass
from typing import Any

from data.text.answer_list import MIN_ANSWER_COUNT, AnswerList, check_min_count
from data.text.vocabulary import Vocabulary
from data.vqa.data_folder import DataFolder

QUESTION_LENGTH = 14  # words that MCAN reads of a question


@dataclass(frozen=True)
class Words:
    """The vocabulary and the answers of a model, and whether they were built just now.

    Of a question it reads the first `question_length` words.
    """

    vocabulary: Vocabulary
    answers: AnswerList
    built: bool = False
    question_length: int = QUESTION_LENGTH

    def __post_init__(self) -> None:
        if type(self.question_length) is not int or self.question_length < 1:
            raise ValueError(
                f"question_length is {self.question_length!r}, expected at least 1 word"
            )

    def encode(self, question: str) -> list[int]:
        """The numbers of a question's words, padded to `question_length`."""
        return self.vocabulary.encode(question, self.question_length)

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return {
            "vocabulary": self.vocabulary.state(),
            "answers": self.answers.state(),
            "question_length": self.question_length,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], source: str) -> "Words":
        """The words that a checkpoint carries; older ones do not say how long a question is."""
        if "vocabulary" not in state or "answers" not in state:
            raise ValueError(f"{source} carries no vocabulary and answers")
        return cls(
            Vocabulary.from_state(state["vocabulary"], source),
            AnswerList.from_state(state["answers"], source),
            question_length=state.get("question_length", QUESTION_LENGTH),
        )

    def notice_of_threshold(self, min_answer_count: int, folder: DataFolder) -> str:
        """What to say when the answers were chosen by another threshold than is asked for now."""
        if self.answers.min_count in (None, min_answer_count):
            return ""
        return (
            f"notice: {folder.answers} was built with "
            f"data.min_answer_count={self.answers.min_count}, not {min_answer_count}; "
            "delete it to have it built again"
        )

    def check_same(self, other: "Words", owner: str, source: str) -> None:
        """Raise when `other`, which belongs to `owner`, are not these words of `source`."""
        self.vocabulary.check_same(other.vocabulary.fingerprint, owner, source)
        self.answers.check_same(other.answers.fingerprint, owner, source)


def annotated_splits(folder: DataFolder) -> str:
    """The splits of a folder that have questions and annotations, such as "train+val"."""
    expected = folder.layout.annotated_splits
    names = [
        name for name in expected if folder.has_questions(name) and folder.has_annotations(name)
    ]
    if expected[0] not in names:
        raise FileNotFoundError(
            f"{folder.root} needs {folder.questions(expected[0]).name} and "
            f"{folder.annotations(expected[0]).name} (see docs/data.md)"
        )
    return "+".join(names)


def build_words(
    folder: DataFolder,
    min_answer_count: int = MIN_ANSWER_COUNT,
    question_length: int = QUESTION_LENGTH,
) -> Words:
    """The vocabulary and the answers of train and val; no file is written."""
    splits = annotated_splits(folder)
    questions = folder.read_questions(splits)
    annotations = folder.match_annotations(splits)
    answers = AnswerList.build(annotations, min_answer_count)
    return Words(Vocabulary.build(questions.texts), answers, True, question_length)


def prepare_words(
    folder: DataFolder,
    min_answer_count: int = MIN_ANSWER_COUNT,
    question_length: int = QUESTION_LENGTH,
) -> Words:
    """Build the vocabulary and answer files from train and val; what is there already stays."""
    check_min_count(min_answer_count)
    there = folder.vocabulary.is_file(), folder.answers.is_file()
    # both are computed before either is written: an error leaves nothing behind
    built = None if all(there) else build_words(folder, min_answer_count, question_length)
    if built and not there[0]:
        built.vocabulary.save(folder.vocabulary)
    if built and not there[1]:
        built.answers.save(folder.answers)
    vocabulary, answers = Vocabulary.load(folder.vocabulary), AnswerList.load(folder.answers)
    return Words(vocabulary, answers, built is not None, question_length)
