"""MCAN: a question and an image in, a logit for every answer out.

Shape letters: B batch, T tokens, L cells, F features per cell, H hidden, A answers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention import AttentionOutput, Grid, Head, without_autocast
from mcan.network.layers import NORM_EPSILON, GuidedAttentionLayer, SelfAttentionLayer
from mcan.network.pooling import ImagePooling, QuestionPooling


@dataclass(frozen=True)
class Sizes:
    """The sizes of a network: all that is needed, beside a head, to build it."""

    num_words: int
    num_answers: int
    num_features: int
    embedding: int = 300
    hidden: int = 512
    num_layers: int = 6
    num_heads: int = 8
    pooling: int = 512
    output: int = 1024
    pca: int = 0  # principal components of the features that are learnt from; 0: the features


class MCAN(nn.Module):
    """An encoder over the words and a decoder over the cells, pooled, summed and classified."""

    def __init__(self, sizes: Sizes, head: Head, dropout: float = 0.1) -> None:
        super().__init__()
        self.sizes = sizes
        hidden, heads = sizes.hidden, sizes.num_heads
        self.embedding = nn.Embedding(sizes.num_words, sizes.embedding)
        self.lstm = nn.LSTM(sizes.embedding, hidden, batch_first=True)
        if sizes.pca:  # fitted to the features once, before training
            self.pca = nn.Linear(sizes.num_features, sizes.pca).requires_grad_(False)
        self.project_features = nn.Linear(sizes.pca or sizes.num_features, hidden)
        layers = range(sizes.num_layers)
        self.encoder = nn.ModuleList(SelfAttentionLayer(hidden, heads, dropout) for _ in layers)
        self.decoder = nn.ModuleList(GuidedAttentionLayer(hidden, heads, dropout) for _ in layers)
        self.pool_image = ImagePooling(hidden, sizes.pooling, sizes.output, head, dropout)
        self.pool_question = QuestionPooling(hidden, sizes.pooling, sizes.output, dropout)
        self.norm = nn.LayerNorm(sizes.output, NORM_EPSILON)
        self.classify = nn.Linear(sizes.output, sizes.num_answers)
        self.splits_first_layer = True  # False: a compiled layer is one graph

    def forward(
        self,
        features: Tensor,
        grid: Grid,
        tokens: Tensor,
        num_components: int | None = None,
        step: int = 0,
        image_index: Tensor | None = None,
        device_index: Tensor | None = None,
    ) -> Tensor:
        """features (B, L, F), tokens (B, T) with 0 as padding -> logits (B, A); see `attend`."""
        question, attended = self.attend(
            features, grid, tokens, num_components, step, image_index, device_index
        )
        return self.answer(question, attended.context)

    def attend(
        self,
        features: Tensor,
        grid: Grid,
        tokens: Tensor,
        num_components: int | None = None,
        step: int = 0,
        image_index: Tensor | None = None,
        device_index: Tensor | None = None,
    ) -> tuple[Tensor, AttentionOutput]:
        """The pooled question (B, output) and the output of the attention head over the image.

        With image_index (B,) on the CPU, question n is about image image_index[n] of the features,
        and what does not depend on the question is computed once per image. The grid is always
        that of the questions, and every image has at least one. `device_index` is the same on the
        model's device, if it is there already.
        """
        is_word = mask_words(tokens)  # (B, T)
        word_mask = as_attention_mask(is_word)
        words = self.encode(tokens, word_mask)  # (B, T, H)
        cells = self.project(features)
        grid = grid.to(cells.device)
        cells = self.decode(cells, words, grid, word_mask, image_index, device_index)  # (B, L, H)
        attended = self.pool_image(cells, grid, num_components, step)
        return self.pool_question(words, is_word), attended

    def project(self, features: Tensor) -> Tensor:
        """features (images, L, F) -> (images, L, H)."""
        features = features.to(self.project_features.weight.dtype)
        return self.project_features(self.pca(features) if self.sizes.pca else features)

    def encode(self, tokens: Tensor, word_mask: Tensor) -> Tensor:
        """tokens (B, T) -> (B, T, H)."""
        # Autocast to bfloat16 computes cuDNN's LSTM in float16, whose gradients need a loss scale;
        # oneDNN has none in half precision for processors without AVX-512, and fails there.
        with without_autocast(tokens.device):
            words, _ = self.lstm(self.embedding(tokens))
        for layer in self.encoder:
            words = layer(words, word_mask)
        return words

    def decode(
        self,
        cells: Tensor,
        words: Tensor,
        grid: Grid,
        word_mask: Tensor,
        image_index: Tensor | None,
        device_index: Tensor | None,
    ) -> Tensor:
        """cells (images, L, H), words (B, T, H) -> (B, L, H)."""
        layers = list(self.decoder)
        if image_index is not None:
            index = image_index if device_index is None else device_index
            index = index.to(cells.device, non_blocking=True)
            if self.splits_first_layer:
                first = layers.pop(0)
                assert isinstance(first, GuidedAttentionLayer)
                cells = first.attend_to_cells(cells, mask_cells(grid_of_images(grid, image_index)))
                cells = first.attend_to_words(cells[index], words, word_mask)
            else:
                cells = cells[index]
        mask = mask_cells(grid)
        for layer in layers:
            cells = layer(cells, words, mask, word_mask)
        return cells

    def answer(self, question: Tensor, context: Tensor) -> Tensor:
        """Logits (…, A) from the pooled question (…, output) and an image context (…, H)."""
        return self.classify(self.norm(question + self.pool_image.merge(context)))


def mask_words(tokens: Tensor) -> Tensor:
    """(B, T): True on words. The first position always counts: attention needs one to attend to."""
    first = torch.arange(tokens.shape[1], device=tokens.device) == 0
    return (tokens != 0) | first


def mask_cells(grid: Grid) -> Tensor | None:
    """No mask where nothing is padded: the fused kernels are faster without one."""
    return None if grid.is_uniform else as_attention_mask(grid.mask)


def as_attention_mask(is_real: Tensor) -> Tensor:
    """(B, N) True on real positions -> (B, 1, 1, N) for every head and query."""
    return is_real[:, None, None, :]


def grid_of_images(grid: Grid, image_index: Tensor) -> Grid:
    """The grid of the images, from that of the questions and the image (B,) of each."""
    sizes = dict(zip(image_index.tolist(), grid.sizes, strict=True))
    return Grid(tuple(sizes[n] for n in sorted(sizes)), grid.device)


def count_parameters(model: nn.Module) -> int:
    """The number of parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


def set_embeddings(model: MCAN, embeddings: Tensor) -> None:
    """Start the word embeddings from a matrix (words, embedding), such as GloVe's."""
    if embeddings.shape != model.embedding.weight.shape:
        raise ValueError(
            f"word vectors of shape {tuple(embeddings.shape)} do not fit the model's "
            f"{tuple(model.embedding.weight.shape)}"
        )
    with torch.no_grad():
        model.embedding.weight.copy_(embeddings)
