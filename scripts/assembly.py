"""A training put together from its config: data, model, optimizer, validation and loop."""

from collections.abc import Iterator, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import mcan
from data.batch import Batch
from data.batches import TrainingBatches
from data.loader import Loader
from data.questions import load_annotations
from data.splits import Folder
from data.words import Words
from mcan.compilation import compile_layers
from mcan.precision import choose_dtype
from mcan.processes import World
from mcan.run_folder import RunFolder
from mcan.schedule import Schedule
from mcan.step import Questions, Stepper, make_optimizer
from mcan.training import Plan, Training
from scripts.dataset import Split, open_split
from scripts.initial_weights import start_weights
from scripts.model import build_head, build_model, build_rate, head_schedules
from scripts.observer import Display, Silent
from scripts.sample_maps import SampleMaps
from scripts.validation import Validation


def assemble(config: DictConfig, world: World, words: Words, folder: RunFolder | None) -> Training:
    """A run, restored from its folder's checkpoint when resuming."""
    split = open_split(config.data, config.train_split, words, config.runtime)
    batches = TrainingBatches(
        split.shapes, config.optim.batch_size, config.seed, config.runtime.mixing
    )
    options: dict[str, Any] = OmegaConf.to_container(config.attention, resolve=True)  # type: ignore[assignment]
    schedules = head_schedules(options, config.optim.epochs)
    checkpoint = world.share(folder.latest() if folder is not None and config.resume else None)
    model = make_model(config, options, schedules, words, split)
    start_weights(model, config, words, checkpoint, world)
    model.to(world.device)
    stepper = Stepper(
        distribute(model, config, world),
        make_optimizer(model, config.optim.betas, config.optim.epsilon),
        world,
        choose_dtype(config.runtime.precision, world.device),
        config.optim.clip,
    )
    validation = open_validation(config, words, world, split)
    loader = split.loader(words, config.runtime, world.device.type == "cuda", share_images=False)
    content = describe(config, model, options, words, split)
    training = Training(
        stepper,
        model.pool_image.head,
        make_plan(config, schedules, batches.num_steps),
        lambda epoch, first: draw(
            loader, batches, world, config.runtime.micro_batches, epoch, first
        ),
        lambda: validation.run(model, world, stepper.dtype),
        lambda: {**content, "model": model.state_dict()},
        folder,
        Silent(),
    )
    if checkpoint is not None:
        training.restore(checkpoint)
    if folder is not None:
        maps = SampleMaps(config, words, model, stepper.dtype, world.device)
        training.observer = Display(config, folder.path, training.progress.global_step, maps)
    return training


def make_model(
    config: DictConfig,
    options: dict[str, Any],
    schedules: dict[str, Schedule],
    words: Words,
    split: Split,
) -> mcan.MCAN:
    """The network for these words and features."""
    sizes = {
        "num_words": len(words.vocabulary),
        "num_answers": len(words.answers),
        "num_features": split.stores.num_features,
    }
    return build_model(config.model, build_head(options, schedules), sizes)


def make_plan(config: DictConfig, schedules: dict[str, Schedule], steps_per_epoch: int) -> Plan:
    """How long, how fast, and the head's values for every epoch."""
    return Plan(
        num_epochs=config.optim.epochs,
        steps_per_epoch=steps_per_epoch,
        learning_rate=build_rate(config.optim.rate),
        schedules=schedules,
        seed=config.seed,
        checkpoint_every_minutes=config.runtime.checkpoint_every_minutes,
        keep=config.runtime.keep,
    )


def distribute(model: mcan.MCAN, config: DictConfig, world: World) -> nn.Module:
    """Compile the layers if asked, and let DDP exchange gradients where there are processes."""
    if config.runtime.compile:
        compile_layers(model, world.device)
    return DistributedDataParallel(model) if world.size > 1 else model


def open_validation(
    config: DictConfig, words: Words, world: World, trained: Split | None = None
) -> Validation:
    """The split that every epoch ends on; its features must be like those that are trained on."""
    split = open_split(config.data, config.val_split, words, config.runtime)
    if trained is not None:
        first = trained.stores.stores[0]
        for store in split.stores.stores:
            store.manifest.refuse_unlike(store.path, first.manifest, first.path)
    return Validation(
        split.loader(words, config.runtime, world.device.type == "cuda", share_images=True),
        load_annotations(Folder(config.data.root).annotation_files(config.val_split)),
        list(words.answers.words),
        config.runtime.evaluation_batch_size,
        config.runtime.mixing,
    )


def draw(
    loader: Loader,
    batches: TrainingBatches,
    world: World,
    num_micro_batches: int,
    epoch: int,
    first_step: int,
) -> Iterator[Sequence[Questions]]:
    """The micro-batches of this process, step by step."""
    pieces = batches.pieces(epoch, first_step, world.rank, world.size, num_micro_batches)
    step: list[Batch] = []
    for batch in loader.iterate(pieces):
        step.append(batch)
        if len(step) == num_micro_batches:
            yield step
            step = []


def describe(
    config: DictConfig, model: mcan.MCAN, options: dict[str, Any], words: Words, split: Split
) -> dict[str, Any]:
    """What a checkpoint holds beside weights and progress: all that is needed to use it alone."""
    return {
        "config": OmegaConf.to_container(config, resolve=True),
        "sizes": vars(model.sizes),
        "attention": options,
        "train_split": config.train_split,
        "manifest": split.stores.stores[0].manifest.dump(),
        **words.state(),
    }
