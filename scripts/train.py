"""make train: train a model on a dataset, validate it each epoch, and say what came of it."""

import sys
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from data.splits import Folder, overlap
from data.words import USUAL_THRESHOLD, Words
from mcan.processes import World, joined_world
from mcan.run_folder import RunFolder
from mcan.stopping import PREEMPTED, StoppedOnRequestError
from mcan.training import NotFiniteError
from scripts.assembly import assemble
from scripts.bad_features import blame_features
from scripts.dataset import ensure_dataset, load_words
from scripts.entry import command
from scripts.examples import draw_examples
from scripts.model import import_modules
from scripts.restarts import count_restarts
from scripts.summary import summarise
from scripts.terminal import outlive_terminal
from scripts.torch_settings import set_up_torch
from scripts.trained import load_trained


@command("train")
def main(config: DictConfig) -> None:
    """Train, and turn a stop on request or a broken number into an exit code."""
    outlive_terminal()
    with joined_world(config.runtime.device, config.runtime.timeout_minutes) as world:
        try:
            train(config, world)
        except StoppedOnRequestError:
            if world.is_first:
                print("stopped on request; resume=true goes on from the checkpoint", flush=True)
            sys.exit(PREEMPTED)
        except FloatingPointError as error:
            raise ValueError(str(error)) from None


def train(config: DictConfig, world: World) -> None:
    """One run on this process's part of every batch."""
    set_up_torch(config.runtime)
    torch.manual_seed(config.seed)  # the initial weights: the same on every process
    import_modules(list(config.modules))
    world.lead(lambda: prepare_data(config))
    words = load_words(config.data)
    config.resume = config.resume or world.share(world.is_first and is_begun(config))
    folder = world.lead(lambda: open_folder(config))
    try:
        lines = run(config, world, words, folder)
    finally:
        if folder is not None:
            folder.close()
    if folder is not None:
        drawn = draw_figures(config, folder.path, world)
        print(summarise(config, lines, folder.path, drawn), flush=True)


def run(
    config: DictConfig, world: World, words: Words, folder: RunFolder | None
) -> list[dict[str, Any]]:
    """Train to the end; settings that do not fit leave no folder in the way of better ones."""
    try:
        training = assemble(config, world, words, folder)
    except BaseException:
        if folder is not None and not config.resume:
            folder.discard()
        raise
    try:
        return training.run()
    except NotFiniteError as error:
        raise blame_features(error, config, words) from None


def draw_figures(config: DictConfig, folder: Path, world: World) -> int:
    """Draw what the best model attends to; the number of figures."""
    if not config.figures:
        return 0
    trained = load_trained(folder, world.device)
    return len(
        draw_examples(
            trained,
            config.data.root,
            folder / "figures",
            config.runtime,
            config.val_split,
            config.figures,
            config.seed,
        )
    )


def prepare_data(config: DictConfig) -> None:
    """What must be there before every process reads it."""
    ensure_dataset(config.data)
    warn_of_threshold(config.data)
    warn_of_overlap(config.train_split, config.val_split)


def warn_of_overlap(trained: str, validated: str) -> None:
    """Say so when the accuracy will be that of questions the model was trained on."""
    seen = overlap(trained, validated)
    if seen:
        print(
            f"WARNING: {'+'.join(seen)} is trained on: its accuracy says little of new questions",
            flush=True,
        )


def warn_of_threshold(config: DictConfig) -> None:
    """Build the words where there are none; say so when those there are not what was asked for."""
    words = load_words(config)
    asked = config.get("answers_more_than", USUAL_THRESHOLD)
    notice = words.notice_of_threshold(asked, Folder(config.root))
    if notice and asked != USUAL_THRESHOLD:  # who names none takes what is there
        print(notice, flush=True)


def is_begun(config: DictConfig) -> bool:
    """Whether torchrun or Slurm started this again, after it had made its folder."""
    if not (count_restarts() and choose_folder(config).is_dir()):
        return False
    print("started again: goes on from the last checkpoint", flush=True)
    return True


def choose_folder(config: DictConfig) -> Path:
    """Where the run is kept."""
    name = config.name or f"{config.data.name}-{config.attention.name}-seed{config.seed}"
    return Path(config.runs) / name


def open_folder(config: DictConfig) -> RunFolder:
    """The run's folder, with its config in it."""
    folder = RunFolder(choose_folder(config), config.resume)
    if not (folder.path / "config.yaml").is_file():
        try:
            folder.write_text("config.yaml", OmegaConf.to_yaml(config))
        except OSError:
            if not config.resume:
                folder.discard()
            raise
    return folder


if __name__ == "__main__":
    main()
