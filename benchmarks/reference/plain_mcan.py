"""MCAN as it was published: the baseline that the fast model is measured by.

Every image is padded to the same number of cells with rows of zeros, which are recognised by their
sum; attention forms its scores and its weights; LayerNorm is written out, and divides by the
unbiased deviation. Parameters have their published names: `mcan.from_published` reads them.
"""

import math
from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from mcan.network.model import Sizes

# Shape letters: B batch, T tokens, L cells, F features, H hidden, A answers.

Pool = Callable[[Tensor, Tensor], Tensor]  # scores (B, L) and cells (B, L, H) -> (B, H)


class LayerNorm(nn.Module):
    """a·(x − mean)/(std + ε) + b, with the unbiased deviation."""

    def __init__(self, size: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.a_2, self.b_2 = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        mean, deviation = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (deviation + self.epsilon) + self.b_2


def make_mlp(size: int, width: int, output: int, p: float) -> nn.Sequential:
    """Linear, ReLU, dropout, linear: `fc.linear` and `linear`."""
    fc = named(linear=nn.Linear(size, width), relu=nn.ReLU(), dropout=nn.Dropout(p))
    return named(fc=fc, linear=nn.Linear(width, output))


def make_ffn(hidden: int, p: float) -> nn.Sequential:
    """The feed-forward part of a layer."""
    return named(mlp=make_mlp(hidden, 4 * hidden, hidden, p))


def named(**layers: nn.Module) -> nn.Sequential:
    """One after the other, under their published names."""
    return nn.Sequential(OrderedDict(layers))


class MHAtt(nn.Module):
    """Multi-head attention: scores, mask, softmax, dropout, sum."""

    def __init__(self, hidden: int, num_heads: int, p: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.linear_v, self.linear_k = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.linear_q, self.linear_merge = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(p)

    def forward(self, memory: Tensor, query: Tensor, padding: Tensor) -> Tensor:
        v, k = self.split(self.linear_v(memory)), self.split(self.linear_k(memory))
        q = self.split(self.linear_q(query))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = self.dropout(scores.masked_fill(padding, -1e9).softmax(-1))
        attended = (weights @ v).transpose(1, 2).contiguous()
        return self.linear_merge(attended.view(*query.shape))

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)


class SA(nn.Module):
    """The encoder's layer."""

    def __init__(self, hidden: int, num_heads: int, p: float) -> None:
        super().__init__()
        self.mhatt, self.ffn = MHAtt(hidden, num_heads, p), make_ffn(hidden, p)
        self.norm1, self.norm2 = LayerNorm(hidden), LayerNorm(hidden)
        self.p = p

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = self.norm1(x + dropout(self.mhatt(x, x, padding), self.p, self.training))
        return self.norm2(x + dropout(self.ffn(x), self.p, self.training))


class SGA(nn.Module):
    """The decoder's layer."""

    def __init__(self, hidden: int, num_heads: int, p: float) -> None:
        super().__init__()
        self.mhatt1, self.mhatt2 = MHAtt(hidden, num_heads, p), MHAtt(hidden, num_heads, p)
        self.ffn = make_ffn(hidden, p)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(hidden) for _ in range(3))
        self.p = p

    def forward(self, x: Tensor, y: Tensor, x_padding: Tensor, y_padding: Tensor) -> Tensor:
        x = self.norm1(x + dropout(self.mhatt1(x, x, x_padding), self.p, self.training))
        x = self.norm2(x + dropout(self.mhatt2(y, x, y_padding), self.p, self.training))
        return self.norm3(x + dropout(self.ffn(x), self.p, self.training))


class Backbone(nn.Module):
    """Encoder and decoder."""

    def __init__(self, sizes: Sizes, p: float) -> None:
        super().__init__()
        layers = range(sizes.num_layers)
        self.enc_list = nn.ModuleList(SA(sizes.hidden, sizes.num_heads, p) for _ in layers)
        self.dec_list = nn.ModuleList(SGA(sizes.hidden, sizes.num_heads, p) for _ in layers)


class AttFlat(nn.Module):
    """Pools positions: a score each, an attention over them, a projection."""

    def __init__(self, sizes: Sizes, p: float) -> None:
        super().__init__()
        self.mlp = make_mlp(sizes.hidden, sizes.pooling, 1, p)
        self.linear_merge = nn.Linear(sizes.hidden, sizes.output)

    def forward(self, x: Tensor, padding: Tensor, pool: Pool) -> Tensor:
        scores = self.mlp(x).squeeze(-1).masked_fill(padding[:, 0, 0], -1e9)
        return self.linear_merge(pool(scores, x))


class PlainMCAN(nn.Module):
    """Padded features and tokens in, logits out; `pool` is the attention over the cells."""

    def __init__(self, sizes: Sizes, p: float = 0.1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.num_words, sizes.embedding)
        self.lstm = nn.LSTM(sizes.embedding, sizes.hidden, batch_first=True)
        self.img_feat_linear = nn.Linear(sizes.num_features, sizes.hidden)
        self.backbone = Backbone(sizes, p)
        self.attflat_img, self.attflat_lang = AttFlat(sizes, p), AttFlat(sizes, p)
        self.proj_norm = LayerNorm(sizes.output)
        self.proj = nn.Linear(sizes.output, sizes.num_answers)

    def forward(self, features: Tensor, tokens: Tensor, pool: Pool | None = None) -> Tensor:
        """features (B, L, F) with zeros as padding, tokens (B, T) with 0 as padding -> (B, A)."""
        word_padding = find_padding(tokens[..., None])
        cell_padding = find_padding(features)
        words, _ = self.lstm(self.embedding(tokens))
        cells = self.img_feat_linear(features)
        for layer in self.backbone.enc_list:
            words = layer(words, word_padding)
        for layer in self.backbone.dec_list:
            cells = layer(cells, words, cell_padding, word_padding)
        question = self.attflat_lang(words, word_padding, pool_by_softmax)
        image = self.attflat_img(cells, cell_padding, pool or pool_by_softmax)
        return self.proj(self.proj_norm(question + image))


def find_padding(features: Tensor) -> Tensor:
    """(B, 1, 1, length): True where a row is zero throughout."""
    return (features.abs().sum(-1) == 0)[:, None, None]


def pool_by_softmax(scores: Tensor, values: Tensor) -> Tensor:
    """Discrete attention: (B, H)."""
    return (scores.softmax(-1)[..., None] * values).sum(1)
