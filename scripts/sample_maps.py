"""A few attention maps after every epoch: how the model comes to look at the same questions."""

import numpy as np
import torch
from omegaconf import DictConfig

import mcan
from data.batches import Piece
from data.words import Words
from mcan.attention_maps import map_attention
from mcan.processes import World
from scripts.dataset import open_split

NUM_MAPS = 4
PIXELS = 16  # a cell


class SampleMaps:
    """Questions of the validation split, spread evenly over it, and the model that is asked."""

    def __init__(
        self,
        config: DictConfig,
        words: Words,
        model: mcan.MCAN,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        split = open_split(config.data, config.val_split, words, config.runtime)
        self.loader = split.loader(words, config.runtime, device.type == "cuda", share_images=True)
        self.model, self.dtype, self.world = model, dtype, World(0, 1, device)
        number = min(NUM_MAPS, len(split.examples))
        self.rows = np.linspace(0, len(split.examples) - 1, number).astype(np.int64)

    def draw(self) -> dict[int, np.ndarray]:
        """By question id: the attention as grey levels (1, h·PIXELS, w·PIXELS) uint8."""
        pictures = {}
        for row in self.rows:
            height, width = self.loader.shapes[row].tolist()
            piece = Piece(np.array([row]), 1.0)
            maps = map_attention(
                self.model, self.loader.iterate([piece]), height * width, self.world, self.dtype
            )
            cells = maps.cells[0].reshape(height, width).numpy()
            grey = np.round(255 * cells / cells.max()).astype(np.uint8)
            pictures[int(maps.question_ids[0])] = np.kron(
                grey, np.ones((PIXELS, PIXELS), dtype=np.uint8)
            )[None]
        return pictures
