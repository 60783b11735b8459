"""MCAN's building blocks: multi-head attention, feed-forward, self-attention and guided attention.

Shape letters: B batch, T tokens, L cells, M queries, N keys, H hidden. Masks are True on real
positions, of shape (B, 1, 1, N), or None where nothing is padded.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attention import without_autocast

NORM_EPSILON = 1e-12  # of MCAN's own LayerNorm once its unbiased deviation is folded into the gain


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention in `num_heads` subspaces."""

    def __init__(self, hidden: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        if num_heads < 1 or hidden % num_heads:
            raise ValueError(f"hidden={hidden} cannot be divided among num_heads={num_heads}")
        self.num_heads, self.dropout = num_heads, dropout
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.value, self.merge = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, M, H) attends to memory (B, N, H) -> (B, M, H)."""
        query = self._split(self.query(x))  # (B, heads, M, H / heads)
        key, value = self._split(self.key(memory)), self._split(self.value(memory))
        dropout = self.dropout if self.training else 0.0
        attended = scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout
        )
        return self.merge(attended.transpose(1, 2).flatten(2))  # (B, M, H)

    def weights(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """The softmax(QKᵀ/√d) (B, heads, M, N) that `forward` attends with outside training."""
        query, key = self._split(self.query(x)), self._split(self.key(memory))
        dtype = torch.promote_types(query.dtype, torch.float32)
        with without_autocast(x.device):
            scores = query.to(dtype) @ key.to(dtype).mT / math.sqrt(query.shape[-1])
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            return scores.softmax(-1)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)


class FeedForward(nn.Sequential):
    """H → 4H → H with a ReLU, at every position."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(hidden, 4 * hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(4 * hidden, hidden),
        )


class Residual(nn.Module):
    """norm(x + dropout(change)): the norm comes after the sum, as in MCAN."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(hidden, NORM_EPSILON)

    def forward(self, x: Tensor, change: Tensor) -> Tensor:
        return self.norm(x + self.dropout(change))


class SelfAttentionLayer(nn.Module):
    """SA, the encoder's layer: the words attend to each other."""

    def __init__(self, hidden: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(hidden, num_heads, dropout)
        self.feed_forward = FeedForward(hidden, dropout)
        self.after_attention = Residual(hidden, dropout)
        self.after_feed_forward = Residual(hidden, dropout)

    def forward(self, words: Tensor, mask: Tensor | None) -> Tensor:
        """words (B, T, H) -> (B, T, H)."""
        words = self.after_attention(words, self.attention(words, words, mask))
        return self.after_feed_forward(words, self.feed_forward(words))


class GuidedAttentionLayer(nn.Module):
    """SGA, the decoder's layer: the cells attend to each other, then to the words."""

    def __init__(self, hidden: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(hidden, num_heads, dropout)
        self.guided_attention = MultiHeadAttention(hidden, num_heads, dropout)
        self.feed_forward = FeedForward(hidden, dropout)
        self.after_self_attention = Residual(hidden, dropout)
        self.after_guided_attention = Residual(hidden, dropout)
        self.after_feed_forward = Residual(hidden, dropout)

    def forward(
        self, cells: Tensor, words: Tensor, mask: Tensor | None, word_mask: Tensor | None
    ) -> Tensor:
        """cells (B, L, H), words (B, T, H) -> (B, L, H)."""
        return self.attend_to_words(self.attend_to_cells(cells, mask), words, word_mask)

    def attend_to_cells(self, cells: Tensor, mask: Tensor | None) -> Tensor:
        """The part without the question: computed once per image, it serves all its questions."""
        return self.after_self_attention(cells, self.self_attention(cells, cells, mask))

    def attend_to_words(self, cells: Tensor, words: Tensor, word_mask: Tensor | None) -> Tensor:
        """The part that depends on the question."""
        cells = self.after_guided_attention(cells, self.guided_attention(cells, words, word_mask))
        return self.after_feed_forward(cells, self.feed_forward(cells))
