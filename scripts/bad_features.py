"""What made a loss that is not finite: a feature, perhaps, that is none."""

import numpy as np
from omegaconf import DictConfig

from data.words import Words
from mcan.training import NotFiniteError
from scripts.dataset import open_split


def blame_features(error: NotFiniteError, config: DictConfig, words: Words) -> NotFiniteError:
    """The same error, which names the row of features that is not finite, where there is one."""
    if not error.question_ids:
        return error
    split = open_split(config.data, config.train_split, words, config.runtime)
    asked = np.isin(split.examples.question_ids, error.question_ids)
    bad = split.stores.find_bad_row(split.examples.image_ids[asked])
    split.stores.close()
    if bad is None:
        return error
    return NotFiniteError(
        f"{bad} is NaN or infinite; copy or make the store again. {error}", error.question_ids
    )
