"""MCAN's building blocks: multi-head attention, feed-forward, self-attention and guided attention.

Shape letters: B batch, T tokens, L cells, H hidden. Masks are True where there is something to
attend to, of shape (B, 1, 1, length), or None where nothing is padded.
"""

import torch
from torch import Tensor, nn

from mcan.dense import Dense
from mcan.dropout import Dropout, drop
from mcan.dropped_attention import attend

NORM_EPSILON = 1e-12  # of MCAN's own LayerNorm once its unbiased deviation is folded into the gain


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention in `num_heads` subspaces."""

    def __init__(self, hidden: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        if hidden % num_heads:
            raise ValueError(f"hidden={hidden} cannot be divided among num_heads={num_heads}")
        self.num_heads, self.dropout = num_heads, dropout
        self.query, self.key = Dense(hidden, hidden), Dense(hidden, hidden)
        self.value, self.merge = Dense(hidden, hidden), Dense(hidden, hidden)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, M, H) looks at memory (B, N, H) -> (B, M, H)."""
        attended = attend(
            self._split(self.query(query)),
            self._split(self.key(memory)),
            self._split(self.value(memory)),
            mask,
            self.dropout if self.training else 0.0,
        )
        return self.merge(attended.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)  # (B, heads, M, H / heads)


class GuidedAttention(MultiHeadAttention):
    """Many queries over a short memory: the memory is folded into the projections.

    (x·Q)·kᵀ = x·(Q·kᵀ), and (w·v)·M = w·(v·M): with few keys the products on the right are narrow,
    and a cell costs heads·N instead of H numbers, twice. In reduced precision the scores would lose
    digits on the way, and the plain order stays.
    """

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """query (B, M, H) looks at memory (B, N, H) -> (B, M, H)."""
        if not self._pays(query, memory):
            return super().forward(query, memory, mask)
        keys = self.key(memory) * (memory.shape[2] // self.num_heads) ** -0.5
        values = self._fold(self.value(memory), self.merge.weight.mT)  # (B, heads·N, H)
        shift = self._fold(keys, self.query.bias[:, None])  # (B, heads·N, 1)
        keys = self._fold(keys, self.query.weight)  # (B, heads·N, H)
        scores = torch.baddbmm(shift, keys, query.mT)  # (B, heads·N, M)
        scores = scores.unflatten(1, (self.num_heads, -1))
        if mask is not None:
            scores = scores.masked_fill(~mask.mT, -torch.inf)
        # over many queries side by side a softmax is far quicker than over a few keys
        weights = drop(scores.softmax(2), self.dropout, self.training).flatten(1, 2)
        return torch.baddbmm(self.merge.bias, weights.mT, values)

    def _pays(self, query: Tensor, memory: Tensor) -> bool:
        """On a CPU and with few keys; GPUs have a kernel that is fused for the plain order."""
        narrow = 2 * self.num_heads * memory.shape[1] <= memory.shape[2]
        wide = query.dtype in (torch.float32, torch.float64)
        on_cpu = query.device.type == "cpu"
        return narrow and wide and on_cpu and not torch.is_autocast_enabled("cpu")

    def _fold(self, memory: Tensor, weight: Tensor) -> Tensor:
        """memory (B, N, H) times weight (H, W), head by head -> (B, heads·N, W)."""
        batch, length, _ = memory.shape
        by_head = memory.view(batch * length, self.num_heads, -1).transpose(0, 1)
        folded = by_head @ weight.unflatten(0, (self.num_heads, -1))  # (heads, B·N, W)
        folded = folded.unflatten(1, (batch, length)).transpose(0, 1)
        return folded.flatten(1, 2)


class ReLU(nn.Module):
    """nn.ReLU, in place where no gradient is recorded: with one, that would cost copies."""

    def forward(self, x: Tensor) -> Tensor:
        return x.relu() if torch.is_grad_enabled() else x.relu_()


class FeedForward(nn.Sequential):
    """H → 4H → H with a ReLU, position by position."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__(
            Dense(hidden, 4 * hidden),
            ReLU(),
            Dropout(dropout),
            Dense(4 * hidden, hidden),
        )


class Residual(nn.Module):
    """norm(x + dropout(change)): the norm comes after, as in MCAN."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(hidden, NORM_EPSILON)

    def forward(self, x: Tensor, change: Tensor) -> Tensor:
        return self.norm(x + self.dropout(change))


class SelfAttentionLayer(nn.Module):
    """SA, the encoder's layer: the question attends to itself."""

    def __init__(self, hidden: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(hidden, num_heads, dropout)
        self.feed_forward = FeedForward(hidden, dropout)
        self.after_attention = Residual(hidden, dropout)
        self.after_feed_forward = Residual(hidden, dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.after_attention(x, self.attention(x, x, mask))
        return self.after_feed_forward(x, self.feed_forward(x))


class GuidedAttentionLayer(nn.Module):
    """SGA, the decoder's layer: the image attends to itself, then to the question."""

    def __init__(self, hidden: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(hidden, num_heads, dropout)
        self.guided_attention = GuidedAttention(hidden, num_heads, dropout)
        self.feed_forward = FeedForward(hidden, dropout)
        self.after_self_attention = Residual(hidden, dropout)
        self.after_guided_attention = Residual(hidden, dropout)
        self.after_feed_forward = Residual(hidden, dropout)

    def forward(
        self, x: Tensor, question: Tensor, mask: Tensor | None, question_mask: Tensor | None
    ) -> Tensor:
        return self.attend_to_question(self.attend_to_itself(x, mask), question, question_mask)

    def attend_to_itself(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The part that does not depend on the question: once an image serves all its questions."""
        return self.after_self_attention(x, self.self_attention(x, x, mask))

    def attend_to_question(
        self, x: Tensor, question: Tensor, question_mask: Tensor | None
    ) -> Tensor:
        """The part that depends on the question."""
        x = self.after_guided_attention(x, self.guided_attention(x, question, question_mask))
        return self.after_feed_forward(x, self.feed_forward(x))


def as_attention_mask(real: Tensor) -> Tensor:
    """(B, length) True on real positions -> (B, 1, 1, length) for every head and query."""
    return real[:, None, None, :]


def mask_real_tokens(tokens: Tensor) -> Tensor:
    """(B, T): True on words. The first position always counts: attention needs one to attend to."""
    first = torch.arange(tokens.shape[1], device=tokens.device) == 0
    return (tokens != 0) | first
