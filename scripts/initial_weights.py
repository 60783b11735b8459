"""What a run's weights start from: its own checkpoint, another model's, or chance and GloVe."""

from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

import mcan
from data.embeddings import load_embeddings
from data.words import Words
from mcan.checkpoint import load_checkpoint
from mcan.processes import World
from scripts.model import fill_model, refuse_other_settings
from scripts.trained import find_checkpoint


def start_weights(
    model: mcan.MCAN,
    config: DictConfig,
    words: Words,
    checkpoint: dict[str, Any] | None,
    world: World,
) -> None:
    """Fill in the weights; fresh ones stay as they were drawn."""
    if checkpoint is not None:
        owner = "this run's checkpoint"
        words.refuse_other(Words.from_state(checkpoint, owner), owner, config.data.root)
        refuse_other_settings(config, checkpoint["config"])
        fill_model(model, checkpoint["model"], owner)
    elif config.init_from:
        copy_weights(model, config, words)
    elif config.glove:
        start_embeddings(model, config, words, world)


def copy_weights(model: mcan.MCAN, config: DictConfig, words: Words) -> None:
    """Those of another model, trained with any head: a checkpoint, or a run's folder."""
    path = find_checkpoint(Path(config.init_from))
    other = load_checkpoint(path)
    words.refuse_other(Words.from_state(other, str(path)), str(path), config.data.root)
    fill_model(model, other["model"], str(path))


def start_embeddings(model: mcan.MCAN, config: DictConfig, words: Words, world: World) -> None:
    """Word vectors of a GloVe file; words that it lacks are drawn by the seed."""
    generator = torch.Generator().manual_seed(config.seed)
    embeddings = load_embeddings(
        config.glove,
        words.vocabulary.words,
        generator,
        config.model.embedding,
        show_progress=world.is_first,
    )
    if world.is_first:
        print(embeddings.notice, flush=True)
    if (width := embeddings.matrix.shape[1]) != config.model.embedding:
        raise ValueError(
            f"{config.glove} has vectors of {width} numbers and the model takes "
            f"{config.model.embedding}; add model.embedding={width}"
        )
    mcan.load_embeddings(model, embeddings.matrix)
