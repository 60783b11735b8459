"""The score network: how relevant each position is."""

from torch import Tensor, nn


class ScoreNetwork(nn.Module):
    """MCAN's MLP hidden → hidden → 1, one score a position: (B, L, hidden) -> (B, L)."""

    def __init__(self, hidden: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.hidden = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.score = nn.Linear(hidden, 1)

    def forward(self, features: Tensor) -> Tensor:
        return self.score(self.dropout(self.hidden(features).relu())).squeeze(-1)
