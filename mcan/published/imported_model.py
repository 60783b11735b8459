"""A published MCAN as a checkpoint of this project: its weights, its words, what is known of it."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.features.from_npz import BOTTOM_UP
from data.features.manifest import GRID, REGIONS, Manifest
from data.text.vocabulary import UNK
from data.text.word_lists import Words
from mcan.checkpoint import DAMAGED, KIND
from mcan.head_schedule import ScheduledHead
from mcan.network.model import Sizes
from mcan.published.weights import from_published

COUNTED = ("num_words", "num_answers", "num_features")  # sizes that data decide, not a config


@dataclass(frozen=True)
class ImportedModel:
    """Weights under this project's names, their sizes, and the words where they are known."""

    source: str
    weights: dict[str, Tensor]
    sizes: Sizes
    words: Words | None = None

    def reorder(self, words: Words) -> tuple["ImportedModel", int, int]:
        """The model with its rows in the order of other words; how many words and answers are new.

        A new word gets the row of unknown words, a new answer no weights and the lowest bias.
        """
        assert self.words is not None  # published_words checks that they are given
        vocabulary, answers = self.words.vocabulary.index, self.words.answers.index
        rows = [vocabulary.get(word, UNK) for word in words.vocabulary.words]
        places = [answers.get(word, -1) for word in words.answers.words]
        is_new = torch.tensor(places) < 0
        weights = dict(self.weights)
        weights["embedding.weight"] = weights["embedding.weight"][rows]
        weight, bias = weights["classify.weight"], weights["classify.bias"]
        weights["classify.weight"] = weight[places].masked_fill(is_new[:, None], 0.0)
        weights["classify.bias"] = torch.where(is_new, bias.min(), bias[places])
        sizes = replace(self.sizes, num_words=len(rows), num_answers=len(places))
        num_new = sum(word not in vocabulary for word in words.vocabulary.words)
        return ImportedModel(self.source, weights, sizes, words), num_new, int(is_new.sum())

    def checkpoint(
        self,
        *,
        attention: Mapping[str, Any],
        optim: Mapping[str, Any],
        train_split: str,
        backbone: str,
        data_root: str,
    ) -> dict[str, Any]:
        """What a checkpoint of this project holds, as far as a published file tells it."""
        options = dict(attention)
        ScheduledHead(options, optim["epochs"]).build()  # wrong options raise here
        sizes = asdict(self.sizes)
        manifest = Manifest(
            source=f"the features behind {self.source}",
            backbone=backbone,
            resize=None,
            num_images=1,  # a manifest counts from one; how many there were is not known
            num_cells=1,
            num_features=self.sizes.num_features,
            checksum="",
            cells=REGIONS if backbone == BOTTOM_UP else GRID,
        )
        return {
            "config": {
                "imported_from": self.source,
                "data": {"name": "vqa_v2", "root": data_root},
                "model": {n: v for n, v in sizes.items() if n not in COUNTED},
                "optim": dict(optim),
                "attention": options,
                "train_split": train_split,
            },
            "sizes": sizes,
            "attention": options,
            "train_split": train_split,
            "manifest": manifest.dump(),
            "progress": {"epoch": optim["epochs"] + 1},
            "lines": [],
            "model": self.weights,
            **(self.words.state() if self.words is not None else {}),
        }


def import_published(path: str, num_heads: int) -> ImportedModel:
    """The weights of a file of mcan-vqa or openvqa, without its words."""
    state = load_published(path)
    try:
        model = from_published(state, num_heads)
    except ValueError as error:
        raise ValueError(f"{path} cannot be imported: {error}") from None
    return ImportedModel(path, dict(model.float().state_dict()), model.sizes)


def load_published(path: str | Path) -> Mapping[str, Tensor]:
    """The state dict of a published file, read without running anything that lies in it."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except DAMAGED as error:
        code = re.search(r"GLOBAL (\S+)", str(error))
        if code is not None:
            raise ValueError(
                f"{path} would run {code[1]}; only files of numbers are read"
            ) from None
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} is not a file that torch can read ({reason[:120]})") from None
    if isinstance(content, Mapping) and content.get("kind") == KIND:
        raise ValueError(f"{path} is a checkpoint of this project already")
    state = content.get("state_dict", content) if isinstance(content, Mapping) else None
    if not isinstance(state, Mapping) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state.items()
    ):
        raise ValueError(f"{path} holds no state dict, neither as a whole nor under 'state_dict'")
    return state
