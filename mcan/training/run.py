"""A training run put together from its settings: data, model, optimizer, validation, trackers."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from mcan.evaluation.evaluation_split import EvaluationSplit, open_evaluation_split
from mcan.evaluation.trained_model import check_positions
from mcan.head_schedule import ScheduledHead
from mcan.network.architecture import build_model
from mcan.network.model import MCAN
from mcan.runtime.code_version import find_commit
from mcan.runtime.compilation import compile_layers
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.runtime.torch_settings import use_threads
from mcan.training.initial_weights import start_weights
from mcan.training.loop import TrainingRun
from mcan.training.run_folder import RunFolder
from mcan.training.settings import TrainingSettings
from mcan.training.step import Stepper, make_optimizer
from mcan.training.trackers import TrackedRun, Trackers, build_trackers
from mcan.training.trackers.profiler import check_profile
from mcan.training.training_data import open_training_data


def build_run(
    settings: TrainingSettings,
    folder: DataFolder,
    words: Words,
    world: World,
    run_folder: RunFolder | None,
) -> TrainingRun:
    """A run, restored from the checkpoint in its folder if there is one.

    The folder is the first process's alone.
    """
    optim, runtime = settings.optim, settings.runtime
    data = open_training_data(settings, folder, words, world)
    check_profile(runtime.profile, data.sampler.num_steps)
    validation = open_validation(settings, folder, words, world)
    data.check_alike(validation.loader.stores)
    head = ScheduledHead(settings.attention, optim.epochs)
    model = build_model(
        settings.model,
        head.build(),
        num_words=len(words.vocabulary),
        num_answers=len(words.answers),
        num_features=data.manifest.num_features,
    )
    check_positions(model, head.options["name"], data.loader.stores)
    checkpoint = world.broadcast(world.run_on_first(find_latest, run_folder))
    before = (checkpoint or {}).get("num_threads")
    use_threads(settings.runtime, settings.model.hidden, world.device, before)
    if world.is_first and world.device.type == "cpu" and settings.runtime.num_threads is None:
        print(f"threads of torch: {torch.get_num_threads()}", flush=True)
    start_weights(model, settings, words, data.loader, checkpoint, world)
    if checkpoint is not None:
        data.check_same(checkpoint)
    model.to(world.device)
    optimizer = make_optimizer(model, optim.betas, optim.epsilon)
    dtype = choose_dtype(runtime.precision, world.device)
    wrapped = distribute(model, runtime.compile, world)
    stepper = Stepper(wrapped, optimizer, world, dtype, optim.clip)
    contents = {
        "config": settings.composed,
        "sizes": vars(model.sizes),
        "attention": head.options,
        "train_split": settings.train_split,
        "num_threads": torch.get_num_threads(),
        "manifest": data.manifest.dump(),
        "questions_checksum": data.checksum,
        "commit": find_commit() if world.is_first else "",  # the first process writes
        **words.state(),
    }
    run = TrainingRun(settings, model, head, stepper, data, validation, contents, run_folder)
    if checkpoint is not None:
        run.restore(checkpoint)
    if run_folder is not None:
        run.trackers = track(run, run_folder)
    return run


def find_latest(folder: RunFolder | None) -> dict[str, Any] | None:
    """The checkpoint to resume from; None in a new run, or in one that keeps none."""
    return None if folder is None else folder.latest()


def open_validation(
    settings: TrainingSettings, folder: DataFolder, words: Words, world: World
) -> EvaluationSplit:
    """What every epoch ends on; a run shows its epochs, not its validation."""
    return open_evaluation_split(
        folder,
        settings.val_split,
        words,
        replace(settings.runtime, show_progress=False),
        world.device,
        limit_batches=settings.runtime.limit_batches,
    )


def distribute(model: MCAN, compiled: bool, world: World) -> nn.Module:
    """Compile the layers if asked, and let DDP exchange gradients where there are processes."""
    if compiled:
        compile_layers(model, world.device)
    return DistributedDataParallel(model) if world.size > 1 else model


def track(run: TrainingRun, folder: RunFolder) -> Trackers:
    """What follows the run from where it is."""
    settings = run.settings
    tracked = TrackedRun(
        folder=folder.path,
        config=settings.composed,
        first_step=run.progress.global_step,
        steps_per_epoch=run.data.sampler.num_steps,
        num_epochs=settings.optim.epochs,
        model=run.model,
        validation=run.validation,
        dtype=run.stepper.dtype,
        device=run.stepper.world.device,
    )
    return build_trackers(settings.tracker, tracked, settings.runtime)
