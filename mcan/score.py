"""The score network: how relevant each position is."""

from torch import Tensor, nn

from attention import without_autocast
from mcan.dropout import Dropout


class ScoreNetwork(nn.Module):
    """MCAN's MLP hidden → width → 1, one score a position: (B, L, hidden) -> (B, L)."""

    def __init__(self, hidden: int, width: int | None = None, dropout: float = 0.1) -> None:
        super().__init__()
        width = hidden if width is None else width
        self.hidden = nn.Linear(hidden, width)
        self.dropout = Dropout(dropout)
        self.score = nn.Linear(width, 1)

    def forward(self, features: Tensor) -> Tensor:
        hidden = self.dropout(self.hidden(features).relu())
        with without_autocast(features.device):  # eight bits of a score are too few for a softmax
            return self.score(hidden.to(self.score.weight.dtype)).squeeze(-1)
