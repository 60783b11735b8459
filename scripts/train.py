"""make train: train a model on a dataset, validate it each epoch, and say what came of it."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import mcan
from data.batch import Batch
from data.batches import TrainingBatches
from data.embeddings import load_embeddings
from data.loader import Loader
from data.questions import load_annotations
from data.splits import Folder, overlap
from data.words import Words
from mcan.checkpoint import load_checkpoint
from mcan.precision import choose_dtype
from mcan.processes import World, join_world, leave_world
from mcan.run_folder import RunFolder
from mcan.step import Questions, Stepper, make_optimizer
from mcan.stopping import PREEMPTED, StoppedOnRequestError
from mcan.training import Plan, Training
from scripts.dataset import ensure_dataset, load_words, open_split
from scripts.entry import command
from scripts.model import (
    build_head,
    build_model,
    build_rate,
    head_schedules,
    import_modules,
    refuse_other_settings,
)
from scripts.observer import Display, Silent
from scripts.validation import Validation


@command("train")
def main(config: DictConfig) -> None:
    """Train, and turn a stop on request or a broken number into an exit code."""
    world = join_world(config.runtime.device)
    try:
        train(config, world)
    except StoppedOnRequestError:
        if world.is_first:
            print("stopped on request; resume=true goes on from the checkpoint", flush=True)
        sys.exit(PREEMPTED)
    except FloatingPointError as error:
        raise ValueError(str(error)) from None
    finally:
        leave_world()


def train(config: DictConfig, world: World) -> None:
    """One run on this process's part of every batch."""
    prepare_runtime(config, world)
    import_modules(list(config.modules))
    if world.is_first:
        ensure_dataset(config.data)
        load_words(config.data)
        warn_of_overlap(config.train_split, config.val_split)
    world.wait()
    words = load_words(config.data)
    folder = open_folder(config, world)
    try:
        lines = run(config, world, words, folder)
    finally:
        if folder is not None:
            folder.close()
    if folder is not None:
        print(summarise(lines[-1], folder.path), flush=True)


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
    return training.run()


def warn_of_overlap(trained: str, validated: str) -> None:
    """Say so when the accuracy will be that of questions the model was trained on."""
    seen = overlap(trained, validated)
    if seen:
        print(
            f"WARNING: {'+'.join(seen)} is trained on: its accuracy says little of new questions",
            flush=True,
        )


def prepare_runtime(config: DictConfig, world: World) -> None:
    """Settings of torch itself."""
    if config.runtime.num_threads:
        torch.set_num_threads(config.runtime.num_threads)
    if config.runtime.deterministic:
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False
    torch.manual_seed(config.seed)  # the initial weights: the same on every process


def open_folder(config: DictConfig, world: World) -> RunFolder | None:
    """The run's folder, opened by the first process alone; a problem there ends all of them."""
    folder, problem = None, None
    if world.is_first:
        name = config.name or f"{config.data.name}-{config.attention.name}-seed{config.seed}"
        try:
            folder = RunFolder(Path(config.runs) / name, config.resume)
            if not (folder.path / "config.yaml").is_file():
                folder.write_text("config.yaml", OmegaConf.to_yaml(config))
        except ValueError as error:
            problem = str(error)
    problem = world.share(problem)
    if problem is not None:
        raise ValueError(problem)
    return folder


def assemble(config: DictConfig, world: World, words: Words, folder: RunFolder | None) -> Training:
    """Data, model, optimizer and loop, restored from the run's checkpoint when resuming."""
    pin = world.device.type == "cuda"
    split = open_split(config.data, config.train_split, words, config.runtime)
    batches = TrainingBatches(
        split.shapes, config.optim.batch_size, config.seed, config.runtime.mixing
    )
    options: dict[str, Any] = OmegaConf.to_container(config.attention, resolve=True)  # type: ignore[assignment]
    schedules = head_schedules(options, config.optim.epochs)
    model = build_model(
        config.model,
        build_head(options, schedules),
        {
            "num_words": len(words.vocabulary),
            "num_answers": len(words.answers),
            "num_features": split.stores.num_features,
        },
    )
    checkpoint = world.share(folder.latest() if folder is not None and config.resume else None)
    start_weights(model, config, words, checkpoint, world)
    model.to(world.device)
    plan = Plan(
        num_epochs=config.optim.epochs,
        steps_per_epoch=batches.num_steps,
        learning_rate=build_rate(config.optim.rate),
        schedules=schedules,
        seed=config.seed,
        checkpoint_every_minutes=config.runtime.checkpoint_every_minutes,
        keep=config.runtime.keep,
    )
    dtype = choose_dtype(config.runtime.precision, world.device)
    stepper = Stepper(
        distribute(model, config, world),
        make_optimizer(model, config.optim.betas, config.optim.epsilon),
        world,
        dtype,
        config.optim.clip,
    )
    validation = open_validation(config, words, pin)
    loader = split.loader(words, config.runtime, pin, share_images=False)
    content = describe(config, model, options, words, split.stores.stores[0].manifest)
    training = Training(
        stepper,
        model.pool_image.head,
        plan,
        lambda epoch, first: draw(
            loader, batches, world, config.runtime.micro_batches, epoch, first
        ),
        lambda: validation.run(model, world, dtype),
        lambda: {**content, "model": model.state_dict()},
        folder,
        Silent(),
    )
    if checkpoint is not None:
        training.restore(checkpoint)
    if folder is not None:
        training.observer = Display(
            folder.path,
            training.progress.global_step,
            plan.num_epochs,
            config.runtime.show_progress,
        )
    return training


def start_weights(
    model: mcan.MCAN,
    config: DictConfig,
    words: Words,
    checkpoint: dict[str, Any] | None,
    world: World,
) -> None:
    """The weights of the run's checkpoint, of another model's, or fresh ones with GloVe."""
    if checkpoint is not None:
        owner = "this run's checkpoint"
        words.refuse_other(Words.from_state(checkpoint, owner), owner, config.data.root)
        refuse_other_settings(config, checkpoint["config"])
        model.load_state_dict(checkpoint["model"])
    elif config.init_from:
        other = load_checkpoint(config.init_from)
        words.refuse_other(
            Words.from_state(other, config.init_from), config.init_from, config.data.root
        )
        try:
            model.load_state_dict(other["model"])
        except RuntimeError:
            raise ValueError(
                f"{config.init_from} has another architecture than model={config.model}"
            ) from None
    elif config.glove:
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
        mcan.load_embeddings(model, embeddings.matrix)


def distribute(model: nn.Module, config: DictConfig, world: World) -> nn.Module:
    """Compile the layers if asked, and let DDP exchange gradients where there are processes."""
    if config.runtime.compile:
        for layer in [*model.encoder, *model.decoder]:  # type: ignore[misc]
            layer.compile(dynamic=True)
    return DistributedDataParallel(model) if world.size > 1 else model


def open_validation(config: DictConfig, words: Words, pin: bool) -> Validation:
    """The split that every epoch ends on."""
    split = open_split(config.data, config.val_split, words, config.runtime)
    return Validation(
        split.loader(words, config.runtime, pin, share_images=True),
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
    config: DictConfig, model: mcan.MCAN, options: dict[str, Any], words: Words, manifest: Any
) -> dict[str, Any]:
    """What a checkpoint holds beside weights and progress: all that is needed to use it alone."""
    return {
        "config": OmegaConf.to_container(config, resolve=True),
        "sizes": vars(model.sizes),
        "attention": options,
        "train_split": config.train_split,
        "manifest": manifest.dump(),
        **words.state(),
    }


def summarise(line: dict[str, Any], folder: Path) -> str:
    """A short table of how it ended, and what to do next."""
    rows = [("overall", line["accuracy"]), *sorted(line["accuracy_by_type"].items())]
    table = [f"  {name:<10} {accuracy:6.2f}" for name, accuracy in rows]
    if "component_shares" in line:
        table.append(f"  K* = 1, 2, …: {line['component_shares']}")
    return "\n".join(
        ["validation accuracy:", *table, f"checkpoints, metrics and TensorBoard are in {folder}"]
    )


if __name__ == "__main__":
    main()
