"""A training run put together from its settings: data, model, optimizer, validation, trackers."""

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from data.batching.examples import load_examples
from data.batching.loader import Loader
from data.batching.sampler import TrainingBatches
from data.features.store_set import open_stores
from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from mcan.evaluation.evaluation_split import EvaluationSplit, open_evaluation_split
from mcan.head_schedule import ScheduledHead
from mcan.network.architecture import build_model
from mcan.network.model import MCAN
from mcan.runtime.compilation import compile_layers
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.training.initial_weights import start_weights
from mcan.training.learning_rate import build_rate
from mcan.training.loop import Plan, TrainingRun
from mcan.training.run_folder import RunFolder
from mcan.training.settings import TrainingSettings
from mcan.training.step import Stepper, make_optimizer
from mcan.training.trackers import TrackedRun, Trackers, build_trackers
from mcan.training.training_data import TrainingData


def build_run(
    settings: TrainingSettings,
    folder: DataFolder,
    words: Words,
    world: World,
    run_folder: RunFolder | None,
    resume: bool,
) -> TrainingRun:
    """A run, restored from its folder's checkpoint when resuming; the first process has a folder.

    Settings that do not fit leave no folder in the way of better ones.
    """
    try:
        return assemble(settings, folder, words, world, run_folder, resume)
    except BaseException:
        if run_folder is not None and not resume:
            run_folder.discard()
        raise


def assemble(
    settings: TrainingSettings,
    folder: DataFolder,
    words: Words,
    world: World,
    run_folder: RunFolder | None,
    resume: bool,
) -> TrainingRun:
    """Open the data, build the model with its weights, and what trains, follows and saves it."""
    optim, runtime = settings.optim, settings.runtime
    data = open_training_data(settings, folder, words, world)
    head = ScheduledHead(settings.attention, optim.epochs)
    model = build_model(
        settings.model,
        head.build(),
        num_words=len(words.vocabulary),
        num_answers=len(words.answers),
        num_features=data.loader.stores.num_features,
    )
    checkpoint = world.broadcast(run_folder.latest() if run_folder is not None and resume else None)
    start_weights(model, settings, words, folder, checkpoint, world)
    model.to(world.device)
    optimizer = make_optimizer(model, optim.betas, optim.epsilon)
    dtype = choose_dtype(runtime.precision, world.device)
    stepper = Stepper(
        distribute(model, runtime.compile, world), optimizer, world, dtype, optim.clip
    )
    plan = Plan(
        num_epochs=optim.epochs,
        steps_per_epoch=data.sampler.num_steps,
        learning_rate=build_rate(optim.rate),
        head=head,
        seed=settings.seed,
        checkpoint_every_minutes=runtime.checkpoint_every_minutes,
        keep=runtime.keep,
    )
    validation = open_evaluation_split(folder, settings.val_split, words, runtime, world.device)
    check_same_features(validation, data)
    trackers = Trackers()
    if run_folder is not None:
        tracked = TrackedRun(
            folder=run_folder.path,
            config=settings.composed,
            first_step=checkpoint["progress"]["global_step"] if checkpoint else 0,
            steps_per_epoch=plan.steps_per_epoch,
            num_epochs=plan.num_epochs,
            model=model,
            validation=validation,
            dtype=dtype,
            device=world.device,
        )
        trackers = build_trackers(settings.tracker, tracked, runtime.show_progress)
    contents = {
        "config": settings.composed,
        "sizes": vars(model.sizes),
        "attention": head.options,
        "train_split": settings.train_split,
        "manifest": data.manifest.dump(),
        **words.state(),
    }
    run = TrainingRun(model, stepper, plan, data, validation, contents, run_folder, trackers)
    if checkpoint is not None:
        run.restore(checkpoint)
    return run


def open_training_data(
    settings: TrainingSettings, folder: DataFolder, words: Words, world: World
) -> TrainingData:
    """The training split: its questions, its features, and which of them make a batch."""
    runtime = settings.runtime
    loader = Loader(
        open_stores(folder.stores(settings.train_split), runtime.reader, runtime.stage_to),
        load_examples(folder, settings.train_split, words),
        len(words.answers),
        num_threads=runtime.loader_threads,
        keep=runtime.micro_batches + 1,
        pin=world.device.type == "cuda",
    )
    sampler = TrainingBatches(
        loader.shapes, settings.optim.batch_size, settings.seed, runtime.mixing
    )
    return TrainingData(loader, sampler, world, runtime.micro_batches)


def check_same_features(validation: EvaluationSplit, data: TrainingData) -> None:
    """Raise when validation features are of another kind than those that are trained on."""
    first = data.loader.stores.stores[0]
    for store in validation.loader.stores.stores:
        store.manifest.check_alike(store.path, first.manifest, first.path)


def distribute(model: MCAN, compiled: bool, world: World) -> nn.Module:
    """Compile the layers if asked, and let DDP exchange gradients where there are processes."""
    if compiled:
        compile_layers(model, world.device)
    return DistributedDataParallel(model) if world.size > 1 else model
