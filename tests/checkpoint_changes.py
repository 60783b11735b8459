"""Checkpoints that are damaged or do not fit: each change gives the sentence that rejects it."""

from collections.abc import Callable
from pathlib import Path

from data.text.answer_list import AnswerList
from data.text.vocabulary import Vocabulary
from mcan.checkpoint import FORMAT, load_checkpoint
from tests.small_models import copy_checkpoint

Change = Callable[[Path], str]


def truncate(path: Path) -> str:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    return "is not a valid checkpoint"


def flip_a_bit(path: Path) -> str:
    """Within the weights, where torch.load alone does not notice it."""
    content = bytearray(path.read_bytes())
    weights = load_checkpoint(path)["model"]["classify.weight"]
    content[content.index(weights.numpy().tobytes()) + 401] ^= 1
    path.write_bytes(content)
    return "is not a valid checkpoint"


def shrink_weights(path: Path) -> str:
    """The weights of a smaller model, as if files of two runs were mixed up."""
    weights = load_checkpoint(path)["model"]
    copy_checkpoint(path, path, model={name: weight[..., :8] for name, weight in weights.items()})
    return "has another architecture"


def swap_words(path: Path) -> str:
    words = load_checkpoint(path)["vocabulary"]["words"]
    other = Vocabulary([*words[:2], words[3], words[2], *words[4:]])
    copy_checkpoint(path, path, vocabulary=other.state())
    return "was made with another vocabulary"


def rotate_answers(path: Path) -> str:
    words = load_checkpoint(path)["answers"]["words"]
    copy_checkpoint(path, path, answers=AnswerList([*words[1:], words[0]]).state())
    return "was made with another answer list"


def raise_format(path: Path) -> str:
    copy_checkpoint(path, path, format=FORMAT + 1)
    return f"has checkpoint format {FORMAT + 1}, this project reads {FORMAT}"


def drop_an_answer(path: Path) -> str:
    words = load_checkpoint(path)["answers"]["words"]
    copy_checkpoint(path, path, answers=AnswerList(words[1:]).state())
    return "its weights were trained with"


def rename_an_answer(path: Path) -> str:
    state = load_checkpoint(path)["answers"]
    copy_checkpoint(path, path, answers={**state, "words": ["changed", *state["words"][1:]]})
    return "its fingerprint does not fit its words"


def leave_out(part: str) -> Change:
    def change(path: Path) -> str:
        copy_checkpoint(path, path, **{part: None})
        return "carries no vocabulary and answers"

    return change


DAMAGES: dict[str, Change] = {"truncated": truncate, "flipped bit": flip_a_bit}
INCOMPATIBILITIES: dict[str, Change] = {
    "another architecture": shrink_weights,
    "another vocabulary": swap_words,
    "other answers": rotate_answers,
    "a newer format": raise_format,
}
CHANGES: dict[str, Change] = {
    **DAMAGES,
    **INCOMPATIBILITIES,
    "fewer answers than weights": drop_an_answer,
    "an answer renamed": rename_an_answer,
    "no vocabulary": leave_out("vocabulary"),
    "no answers": leave_out("answers"),
}
