"""make import-mcan: a published MCAN as a checkpoint of this project."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

import mcan
from data.answers import AnswerList
from data.files import refuse_file_on_the_way, refuse_folder
from data.manifest import Manifest
from data.splits import Folder, split_names
from data.vocabulary import UNK, Vocabulary
from data.words import Words
from mcan.checkpoint import save_checkpoint
from mcan.published import load_published
from mcan.training import Progress
from scripts.entry import command
from scripts.model import build_head, head_schedules, import_modules
from scripts.published_words import read_words
from scripts.settings import require_text

COUNTED = ("num_words", "num_answers", "num_features")  # sizes that data decide, not a config


@dataclass(frozen=True)
class Imported:
    """Weights under this project's names, the sizes they tell, and the words if they are known."""

    weights: dict[str, Tensor]
    sizes: mcan.Sizes
    words: Words | None


@command("import_mcan")
def main(config: DictConfig) -> None:
    """Bring a file over, and say what came of it."""
    for line in import_file(config):
        print(line)


def import_file(config: DictConfig) -> list[str]:
    """Read, check, rename, write; what there is to say of it."""
    output = Path(require_text("output", config.output))
    refuse_taken(output)
    split_names(config.train_split)
    import_modules(list(config.modules))
    imported = import_weights(config)
    notices: list[str] = []
    if config.words_of:
        imported, notices = fit_words(imported, Folder(require_text("words_of", config.words_of)))
    save_checkpoint(output, describe(config, imported))
    return [describe_sizes(output, imported), *notices]


def refuse_taken(output: Path) -> None:
    """Raise when the checkpoint would take the place of a file, or cannot be written."""
    refuse_file_on_the_way(output)
    refuse_folder(output)
    if output.exists():
        raise FileExistsError(f"{output} exists already; delete it or name another output=…")


def import_weights(config: DictConfig) -> Imported:
    """The weights of the published file, and its words where they are given."""
    path = require_text("checkpoint", config.checkpoint)
    state = load_published(path)
    try:
        model = mcan.from_published(state, config.num_heads)
    except ValueError as error:
        raise ValueError(f"{path} cannot be imported: {error}") from None
    words = read_words(config, model.sizes)
    return Imported(dict(model.float().state_dict()), model.sizes, words)


def fit_words(imported: Imported, folder: Folder) -> tuple[Imported, list[str]]:
    """The weights with their rows in the order of a data folder's words, and what was new there.

    A new word gets the row of unknown words, a new answer no weights and the lowest bias there is.
    """
    for path in (folder.vocabulary, folder.answers):
        if not path.is_file():
            raise FileNotFoundError(f"there is no {path}; run make data for that folder first")
    words = Words(Vocabulary.load(folder.vocabulary), AnswerList.load(folder.answers))
    known = imported.words
    assert known is not None  # read_words refuses words_of without them
    rows = [known.vocabulary.index.get(word, UNK) for word in words.vocabulary.words]
    places = [known.answers.index.get(word, -1) for word in words.answers.words]
    is_new = torch.tensor(places) < 0
    weights = dict(imported.weights)
    weights["embedding.weight"] = weights["embedding.weight"][rows]
    weight, bias = weights["classify.weight"], weights["classify.bias"]
    weights["classify.weight"] = weight[places].masked_fill(is_new[:, None], 0.0)
    weights["classify.bias"] = torch.where(is_new, bias.min(), bias[places])
    sizes = replace(imported.sizes, num_words=len(rows), num_answers=len(places))
    num_new = sum(word not in known.vocabulary.index for word in words.vocabulary.words)
    notice = (
        f"its rows are in the order of {folder.root}, of whose {len(rows)} words {num_new} and of "
        f"whose {len(places)} answers {int(is_new.sum())} are new to it"
    )
    return Imported(weights, sizes, words), [notice]


def describe_sizes(output: Path, imported: Imported) -> str:
    """A line on what was written."""
    sizes = imported.sizes
    known = "" if imported.words is not None else "; it carries no words (tokens=… answers=…)"
    return (
        f"{output}: {sizes.num_layers} layers of {sizes.hidden}, {sizes.num_features} features a "
        f"cell, {sizes.num_words} words, {sizes.num_answers} answers{known}"
    )


def describe(config: DictConfig, imported: Imported) -> dict[str, Any]:
    """What a checkpoint of this project holds, as far as a published file tells it."""
    options: dict[str, Any] = OmegaConf.to_container(config.attention, resolve=True)  # type: ignore[assignment]
    build_head(options, head_schedules(options, config.optim.epochs))  # wrong options raise here
    sizes = asdict(imported.sizes)
    manifest = Manifest(
        source=f"the features behind {config.checkpoint}",
        backbone=config.backbone,
        resize=None,
        num_images=1,  # a manifest counts from one; how many there were is not known
        num_cells=1,
        num_features=imported.sizes.num_features,
        checksum="",
    )
    settings = {
        "imported_from": str(config.checkpoint),
        "data": {"name": "vqa_v2", "root": config.words_of or "datasets/vqa_v2"},
        "model": {n: v for n, v in sizes.items() if n not in COUNTED},
        "optim": OmegaConf.to_container(config.optim, resolve=True),
        "attention": options,
        "train_split": config.train_split,
    }
    return {
        "config": settings,
        "sizes": sizes,
        "attention": options,
        "train_split": config.train_split,
        "manifest": manifest.dump(),
        "progress": asdict(Progress(epoch=config.optim.epochs + 1)),
        "lines": [],
        "model": imported.weights,
        **(imported.words.state() if imported.words is not None else {}),
    }


if __name__ == "__main__":
    main()
