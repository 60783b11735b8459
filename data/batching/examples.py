"""The questions of a split as arrays: what a model reads and what it should answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from data.vqa.questions import Annotation, Questions, match_annotations


@dataclass(frozen=True)
class Examples:
    """The questions of a split, or of several, with their words and soft scores as numbers.

    The targets of question i are the entries target_offsets[i] to target_offsets[i + 1].
    """

    question_ids: np.ndarray  # (Q,) int64
    image_ids: np.ndarray  # (Q,) int64
    tokens: np.ndarray  # (Q, T) int64, PAD 0
    target_offsets: np.ndarray  # (Q + 1,) int64
    target_indices: np.ndarray  # (n,) int64, into the answer list
    target_scores: np.ndarray  # (n,) float32, soft scores
    has_answers: bool  # False for splits without annotations

    def __len__(self) -> int:
        return len(self.question_ids)

    def dense_targets(self, rows: np.ndarray, num_answers: int) -> np.ndarray:
        """The soft scores of the given questions, zeros included: (b,) -> (b, A) float32."""
        rows = np.asarray(rows, dtype=np.int64)
        dense = np.zeros((len(rows), num_answers), dtype=np.float32)
        starts = self.target_offsets[rows]
        counts = self.target_offsets[rows + 1] - starts
        batch_rows = np.repeat(np.arange(len(rows)), counts)
        # entry j of row i lies at starts[i] + j; cumsum gives where each row's j begins
        within = np.arange(len(batch_rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = np.repeat(starts, counts) + within
        dense[batch_rows, self.target_indices[entries]] = self.target_scores[entries]
        return dense


def build_examples(
    questions: Questions, annotations: list[Annotation] | None, words: Words
) -> Examples:
    """Encode a split; `annotations` None gives examples without targets."""
    encoded = {text: words.encode(text) for text in set(questions.texts)}  # a third are distinct
    tokens = np.array([encoded[text] for text in questions.texts], dtype=np.int64)
    offsets = np.zeros(len(questions) + 1, dtype=np.int64)
    indices: list[int] = []
    scores: list[float] = []
    if annotations is not None:
        for row, annotation in enumerate(match_annotations(questions, annotations)):
            row_indices, row_scores = words.answers.soft_scores(annotation)
            indices += row_indices
            scores += row_scores
            offsets[row + 1] = len(indices)
    return Examples(
        question_ids=questions.ids,
        image_ids=questions.image_ids,
        tokens=tokens.reshape(len(questions), words.question_length),
        target_offsets=offsets,
        target_indices=np.array(indices, dtype=np.int64),
        target_scores=np.array(scores, dtype=np.float32),
        has_answers=annotations is not None,
    )


def load_examples(folder: DataFolder, split: str, words: Words) -> Examples:
    """Read a split or a combination from a data folder; test splits need no annotation file.

    A split to train on may add extra questions, as "train+val+vg" does.
    """
    layout = folder.layout
    split, extra = layout.divide_training(split)
    added = [build_examples(*folder.read_extra(name), words) for name in extra]
    required = any(name in layout.annotated for name in layout.split_names(split))
    has_answers = required or folder.has_annotations(split)
    annotations = folder.read_annotations(split) if has_answers else None
    examples = build_examples(folder.read_questions(split), annotations, words)
    return join_examples([examples, *added]) if added else examples


def join_examples(parts: Sequence[Examples]) -> Examples:
    """Annotated questions of several files as one split; an id may occur in several."""
    shifts = np.cumsum([0, *(len(part.target_indices) for part in parts)])
    offsets = [
        part.target_offsets[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)
    ]
    return Examples(
        question_ids=np.concatenate([part.question_ids for part in parts]),
        image_ids=np.concatenate([part.image_ids for part in parts]),
        tokens=np.concatenate([part.tokens for part in parts]),
        target_offsets=np.concatenate([*offsets, shifts[-1:]]),
        target_indices=np.concatenate([part.target_indices for part in parts]),
        target_scores=np.concatenate([part.target_scores for part in parts]),
        has_answers=all(part.has_answers for part in parts),
    )
