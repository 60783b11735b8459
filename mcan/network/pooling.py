"""From many positions to one vector: a score each, an attention head over them, a projection."""

import torch
from torch import Tensor, nn

from attention import AttentionOutput, Grid, Head, without_autocast


class ScoreNetwork(nn.Module):
    """MCAN's MLP hidden → width → 1, one score per position: (B, L, H) -> (B, L)."""

    def __init__(self, hidden: int, width: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(hidden, width)
        self.dropout = nn.Dropout(dropout)
        self.score = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.hidden(x).relu())  # (B, L, width)
        with without_autocast(x.device):  # eight bits of a score are too few for a softmax
            return self.score(hidden.to(self.score.weight.dtype)).squeeze(-1)


class ImagePooling(nn.Module):
    """Pools the cells with any registered attention head; the parameters are the same under all."""

    def __init__(self, hidden: int, width: int, output: int, head: Head, dropout: float) -> None:
        super().__init__()
        self.score_network = ScoreNetwork(hidden, width, dropout)
        self.head = head
        self.merge = nn.Linear(hidden, output)

    def forward(
        self, cells: Tensor, grid: Grid, num_components: int | None = None, step: int = 0
    ) -> AttentionOutput:
        """cells (B, L, H) -> the head's output, whose context (B, H) `merge` projects later."""
        scores = self.score_network(cells)  # (B, L)
        return self.head(scores, cells, grid, num_components=num_components, step=step)


class QuestionPooling(nn.Module):
    """Pools the words of a question by discrete attention, then projects."""

    def __init__(self, hidden: int, width: int, output: int, dropout: float) -> None:
        super().__init__()
        self.score_network = ScoreNetwork(hidden, width, dropout)
        self.merge = nn.Linear(hidden, output)

    def forward(self, words: Tensor, is_word: Tensor) -> Tensor:
        """words (B, T, H), is_word (B, T) -> (B, output)."""
        weights = self.weights(words, is_word)
        return self.merge((weights[:, None].to(words.dtype) @ words).squeeze(1))

    def weights(self, words: Tensor, is_word: Tensor) -> Tensor:
        """(B, T): the attention weights of the words, zero in padding, sum 1."""
        scores = self.score_network(words).masked_fill(~is_word, -torch.inf)
        return scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
