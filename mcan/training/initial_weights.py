"""What a run's weights start from: its checkpoint, another model's, or what is known beforehand.

Word vectors are known of the words, principal components of the features, frequencies of the
answers; the rest is random.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.batching.examples import Examples
from data.batching.loader import Loader
from data.features.manifest import Manifest
from data.features.pca import fit_pca
from data.features.store_set import StoreSet
from data.text.embeddings import load_embeddings
from data.text.word_lists import Words
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import check_kind, find_checkpoint
from mcan.network.architecture import load_weights
from mcan.network.model import MCAN, set_embeddings
from mcan.runtime.distributed import World
from mcan.training.same_settings import check_same_settings, check_same_value
from mcan.training.settings import TrainingSettings


def start_weights(
    model: MCAN,
    settings: TrainingSettings,
    words: Words,
    loader: Loader,
    checkpoint: dict[str, Any] | None,
    world: World,
) -> None:
    """Fill in the weights; fresh ones stay as they were drawn."""
    if checkpoint is not None:
        owner = "this run's checkpoint"
        before = Words.from_state(checkpoint, owner)
        words.check_same(before, owner, settings.data.root)
        check_same_value("data.question_length", before.question_length, words.question_length)
        check_same_settings(settings.composed, checkpoint["config"])
        check_features(loader.stores, checkpoint, owner)
        load_weights(model, checkpoint["model"], owner)
    elif settings.init_from:  # another model, trained with any head
        path = find_checkpoint(Path(settings.init_from))
        other = load_checkpoint(path)
        words.check_same(Words.from_state(other, str(path)), str(path), settings.data.root)
        check_features(loader.stores, other, str(path))
        load_weights(model, other["model"], str(path))
    else:
        if settings.word_vectors:
            start_embeddings(model, settings.word_vectors, words, settings.seed, world)
        if model.sizes.pca:
            start_pca(model, loader, world)
        if settings.optim.answer_prior:
            start_classifier(model, loader.examples)


def check_features(stores: StoreSet, checkpoint: Mapping[str, Any], owner: str) -> None:
    """Raise when the weights of a checkpoint were trained on features of another kind."""
    manifest = Manifest.parse(checkpoint["manifest"], owner)
    check_kind(stores, checkpoint["sizes"]["num_features"], manifest, owner)


def start_embeddings(model: MCAN, glove: str, words: Words, seed: int, world: World) -> None:
    """Word vectors of a GloVe file; words that it lacks are drawn by the seed."""
    expected = model.sizes.embedding
    embeddings = load_embeddings(
        glove,
        words.vocabulary.words,
        torch.Generator().manual_seed(seed),
        expected,
        show_progress=world.is_first,
    )
    if world.is_first:
        print(embeddings.notice, flush=True)
    if (width := embeddings.matrix.shape[1]) != expected:
        raise ValueError(
            f"{glove} has vectors of {width} numbers and the model takes {expected}; add "
            f"model.embedding={width}"
        )
    set_embeddings(model, embeddings.matrix)


def start_pca(model: MCAN, loader: Loader, world: World) -> None:
    """The principal components of the training images' features."""
    fitted = fit_pca(loader.stores, loader.examples.image_ids, model.sizes.pca)
    with torch.no_grad():
        model.pca.weight.copy_(fitted.directions)
        model.pca.bias.copy_(-fitted.directions @ fitted.mean)
    if world.is_first:
        print(
            f"{model.sizes.pca} principal components have {100 * fitted.explained:.0f} % of the "
            f"variance of {model.sizes.num_features} features",
            flush=True,
        )


def start_classifier(model: MCAN, examples: Examples) -> None:
    """Biases with which every answer's probability is its mean score over the training questions.

    Every answer counts half a question more, so that those that never score have a finite bias.
    """
    num_answers = model.sizes.num_answers
    scores = np.bincount(examples.target_indices, examples.target_scores, num_answers)
    prior = torch.from_numpy((scores + 0.5) / (len(examples) + 1))
    with torch.no_grad():
        model.classify.bias.copy_(prior.logit())
