"""From many positions to one vector: a score each, an attention head over them, a projection."""

import torch
from torch import Tensor, nn

from attention import AttentionOutput, Grid, Head
from mcan.score import ScoreNetwork


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
        """cells (B, L, H) -> the head's output; its context is still to be projected."""
        scores = self.score_network(cells)
        return self.head(scores, cells, grid, num_components=num_components, step=step)


class QuestionPooling(nn.Module):
    """Pools the words by discrete attention, the same way."""

    def __init__(self, hidden: int, width: int, output: int, dropout: float) -> None:
        super().__init__()
        self.score_network = ScoreNetwork(hidden, width, dropout)
        self.merge = nn.Linear(hidden, output)

    def forward(self, words: Tensor, real: Tensor) -> Tensor:
        """words (B, T, H), real (B, T) -> (B, output)."""
        scores = self.score_network(words).masked_fill(~real, -torch.inf)
        weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        return self.merge((weights[:, None].to(words.dtype) @ words).squeeze(1))
