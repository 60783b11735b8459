"""The first embedding of the question words: GloVe where it knows them, noise elsewhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from data.text.glove import read_vectors
from data.text.vocabulary import PAD, SPECIAL

RANDOM_SCALE = 0.4  # of the order of GloVe's own numbers (0.54 in a sample of glove.6B.100d)


class Embeddings(NamedTuple):
    """One row per word of the vocabulary, and where the rows come from."""

    matrix: torch.Tensor  # (V, E) float32; row PAD is zero
    notice: str  # one sentence to print, with the share of words that were found


def load_embeddings(
    path: str | Path | None,
    words: Sequence[str],
    generator: torch.Generator,
    num_features: int = 300,
    show_progress: bool = True,
) -> Embeddings:
    """Rows of a GloVe file, noise for the other words; all noise of `num_features` without a file.

    `words` are all words of the vocabulary. A file alone decides its number of features.
    """
    num_words = len(words) - len(SPECIAL)
    if not path:
        notice = (
            f"word vectors: no GloVe file was given, so all {num_words:,} words start at random "
            f"vectors of {num_features} numbers and are learnt from the questions alone"
        )
        return Embeddings(draw_noise(len(words), num_features, RANDOM_SCALE, generator), notice)
    found = read_vectors(path, words[len(SPECIAL) :], show_progress)
    if not found:
        raise ValueError(
            f"{path} has none of the {num_words} question words; is it made for another language?"
        )
    vectors = torch.from_numpy(np.stack(list(found.values())))  # (found, E)
    scale = float(vectors.std(correction=0))
    matrix = draw_noise(len(words), vectors.shape[1], scale, generator)
    rows = {word: row for row, word in enumerate(words)}
    matrix[[rows[word] for word in found]] = vectors
    notice = (
        f"word vectors: {len(found):,} of {num_words:,} words ({len(found) / num_words:.1%}) found "
        f"in {path} ({vectors.shape[1]} numbers each), "
        f"the others start at noise of scale {scale:.2f}"
    )
    return Embeddings(matrix, notice)


def draw_noise(
    num_rows: int, num_features: int, scale: float, generator: torch.Generator
) -> torch.Tensor:
    """Zero-mean normal noise (V, E) float32; the padding has none."""
    matrix = torch.randn(num_rows, num_features, generator=generator) * scale
    matrix[PAD] = 0
    return matrix
