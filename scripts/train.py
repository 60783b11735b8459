"""make train: train a model on a dataset, validate it each epoch, and print a summary."""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path

import torch
from omegaconf import OmegaConf

from attention.heads.registry import complete_options
from configs.schema.training import Train
from data.features.staging import stage_stores
from data.vqa.data_folder import DataFolder
from data.vqa.question_only import score_question_only
from figures.run_figures import draw_run_figures
from mcan.evaluation.trained_model import load_trained
from mcan.head_options import selects_components
from mcan.runtime.distributed import World
from mcan.runtime.stop_request import PREEMPTED, StoppedOnRequestError
from mcan.runtime.torch_settings import set_up_torch
from mcan.training.loop import TrainingRun
from mcan.training.preparation import prepare_data
from mcan.training.run import build_run
from mcan.training.run_folder import open_run_folder, remove_debug_run
from mcan.training.summary import describe_files, suggest_commands, summarise
from scripts.cli.command import command
from scripts.cli.processes import open_processes
from scripts.cli.run_names import choose_folder
from scripts.cli.terminal import ignore_closed_terminal
from scripts.cluster.exit_status import count_restarts


@command("train")
def main(settings: Train) -> None:
    """Train, and turn a stop on request or a number that is not finite into an exit code."""
    ignore_closed_terminal()
    try:
        with open_processes(settings.runtime) as world:
            try:
                train(settings, world)
            except FloatingPointError as error:
                raise ValueError(str(error)) from None
            except MemoryError as error:
                advice = "resume=true continues from the last checkpoint"
                raise MemoryError(f"{error}; {advice}") from None
    except StoppedOnRequestError:
        if world.is_first:
            print("stopped on request; resume=true continues from the checkpoint", flush=True)
        sys.exit(PREEMPTED)


def train(settings: Train, world: World) -> None:
    """One run on this process's part of every batch."""
    set_up_torch(settings.runtime)
    folder = DataFolder(settings.data.root, settings.data.layout)
    trained_splits, _ = folder.layout.divide_training(settings.train_split)
    stores = [*folder.training_stores(settings.train_split), *folder.stores(settings.val_split)]
    world.join(stage_stores(stores, settings.runtime.stage_to))
    if settings.is_debug:
        settings = start_debug_run(settings, folder, world)
    run = open_run(settings, folder, world)
    with run.folder or contextlib.nullcontext():
        if world.is_first:
            question_only = score_question_only(
                folder, trained_splits, settings.val_split, run.validation.question_ids
            )
        folder.release(trained_splits)
        lines = run.train()
    if world.is_first:
        path = choose_folder(settings)
        num_figures = draw_figures(settings, folder, path, world)
        print(summarise(lines, question_only), "", sep="\n")
        print(describe_files(path, num_figures), "", sep="\n")
        has_lambda = selects_components(run.contents["attention"])
        print(suggest_commands(path, folder, has_lambda, settings.modules), flush=True)


def open_run(settings: Train, folder: DataFolder, world: World) -> TrainingRun:
    """A new run, or one to resume, with its data prepared and, on the first process, its folder."""
    torch.manual_seed(settings.seed)  # the initial weights: the same on every process
    path = choose_folder(settings)
    resume = settings.resume or world.broadcast(world.is_first and is_restarted(path))
    words = world.broadcast(world.run_on_first(prepare_data, settings, folder, resume))
    composed = {**settings.composed, "attention": complete_options(**settings.attention)}
    config = OmegaConf.to_yaml(OmegaConf.create(composed))
    run_folder = world.run_on_first(open_run_folder, path, resume, config)
    try:
        return build_run(settings, folder, words, world, run_folder)
    except BaseException:  # settings that do not fit leave no folder in the way of better ones
        if run_folder is not None:
            run_folder.discard()
        raise


def start_debug_run(settings: Train, folder: DataFolder, world: World) -> Train:
    """debug=quick: train the first epoch in a new folder; the settings that resume the run."""
    if settings.resume:
        raise ValueError("resume=true does not go with debug=quick, which resumes by itself")
    path = choose_folder(settings)
    world.run_on_first(remove_debug_run, path)
    first = replace(settings, optim=replace(settings.optim, epochs=1))
    run = open_run(first, folder, world)
    with run.folder or contextlib.nullcontext():
        run.train()
    if world.is_first:
        print(f"the run in {path} is built again from its checkpoint and resumed", flush=True)
    return replace(settings, resume=True)


def is_restarted(path: Path) -> bool:
    """Whether torchrun or Slurm started this again, after it had made its folder."""
    if not (count_restarts() and path.is_dir()):
        return False
    print("started again: resumes from the last checkpoint", flush=True)
    return True


def draw_figures(settings: Train, folder: DataFolder, path: Path, world: World) -> int:
    """Draw what the best model attends to; the number of figures."""
    if not settings.figures:
        return 0
    drawn = draw_run_figures(
        load_trained(path, world.device),
        folder,
        path / "figures",
        settings.runtime,
        split=settings.val_split,
        num=settings.figures,
        seed=settings.seed,
    )
    return len(drawn)


if __name__ == "__main__":
    main()
