"""make train: train a model on a dataset, validate it each epoch, and print a summary."""

import contextlib
import sys
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
from mcan.runtime.distributed import World, open_world
from mcan.runtime.stop_request import PREEMPTED, StoppedOnRequestError
from mcan.runtime.torch_settings import set_up_torch
from mcan.training.preparation import prepare_data
from mcan.training.run import build_run
from mcan.training.run_folder import open_run_folder
from mcan.training.summary import describe_files, suggest_commands, summarise
from scripts.cli.command import command
from scripts.cli.terminal import ignore_closed_terminal
from scripts.cluster.exit_status import count_restarts


@command("train")
def main(settings: Train) -> None:
    """Train, and turn a stop on request or a number that is not finite into an exit code."""
    ignore_closed_terminal()
    with open_world(settings.runtime.device, settings.runtime.timeout_minutes) as world:
        try:
            train(settings, world)
        except StoppedOnRequestError:
            if world.is_first:
                print("stopped on request; resume=true continues from the checkpoint", flush=True)
            sys.exit(PREEMPTED)
        except FloatingPointError as error:
            raise ValueError(str(error)) from None


def train(settings: Train, world: World) -> None:
    """One run on this process's part of every batch."""
    set_up_torch(settings.runtime)
    torch.manual_seed(settings.seed)  # the initial weights: the same on every process
    folder = DataFolder(settings.data.root, settings.data.layout)
    stores = [*folder.stores(settings.train_split), *folder.stores(settings.val_split)]
    world.join(stage_stores(stores, settings.runtime.stage_to))
    path = choose_folder(settings)
    resume = settings.resume or world.broadcast(world.is_first and is_restarted(path))
    words = world.broadcast(world.run_on_first(prepare_data, settings, folder, resume))
    composed = {**settings.composed, "attention": complete_options(**settings.attention)}
    config = OmegaConf.to_yaml(OmegaConf.create(composed))
    run_folder = world.run_on_first(open_run_folder, path, resume, config)
    try:
        run = build_run(settings, folder, words, world, run_folder)
    except BaseException:  # settings that do not fit leave no folder in the way of better ones
        if run_folder is not None:
            run_folder.discard()
        raise
    with run_folder or contextlib.nullcontext():
        if world.is_first:
            question_only = score_question_only(folder, settings.train_split, settings.val_split)
        folder.release(settings.train_split)
        lines = run.train()
    if world.is_first:
        num_figures = draw_figures(settings, folder, path, world)
        print(summarise(lines, question_only), "", sep="\n")
        print(describe_files(path, num_figures), "", sep="\n")
        print(suggest_commands(path, folder, "lam" in run.contents["attention"]), flush=True)


def choose_folder(settings: Train) -> Path:
    """Where the run is kept; one without a name has that of its data, head and seed."""
    default = f"{settings.data.name}-{settings.attention['name']}-seed{settings.seed}"
    return Path(settings.runs) / (settings.name or default)


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
