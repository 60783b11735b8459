"""A training step of the paper's model on a GPU, beside what `make cost` estimates for it.

The steps read their features through the loader, from a store in the page cache. The same steps on
a batch that is there already show what loading adds.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import attention
import mcan
from benchmarks.measurement import Measurement, Part, ratios
from benchmarks.parts.training import SMALL, make_batch
from benchmarks.sample_features import ask_questions
from benchmarks.timing import Work, interleave
from data.batching.batch import Batch
from data.batching.device_copies import copy_ahead
from data.batching.loader import Loader
from data.batching.sampler import TrainingSampler
from data.features.store_set import open_stores
from data.features.writer import StoreWriter
from data.text.word_lists import QUESTION_LENGTH
from mcan.cost.hours import GPUS, Assumptions, find_gpu
from mcan.cost.step_cost import Cost, count_training_step
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.training.step import Stepper, make_optimizer


@dataclass(frozen=True)
class Workload:
    """The steps to take; the defaults are those of `make cost`."""

    sizes: mcan.Sizes = SMALL
    batch_size: int = 64
    grid: tuple[int, int] = (22, 23)
    num_images: int = 128  # a store of 0.3 GB
    num_steps: int = 20  # per round
    rounds: int = 5

    @property
    def num_cells(self) -> int:
        return self.grid[0] * self.grid[1]

    def build_model(self) -> mcan.MCAN:
        return mcan.MCAN(self.sizes, attention.build("multimodal"))

    def count(self, dtype: torch.dtype) -> Cost:
        """What `make cost` counts for a step."""
        with torch.device("meta"):
            model = self.build_model()
        return count_training_step(model, self.batch_size, self.grid, QUESTION_LENGTH, dtype)


PAPER = Workload()


@dataclass(frozen=True)
class StepFigures:
    """What was measured; one number per round."""

    milliseconds: tuple[float, ...]
    loading_shares: tuple[float, ...]  # of the step, in percent
    peak_bytes: int  # allocated on the GPU; 0 on the CPU

    def speeds(self, batch_size: int) -> tuple[float, ...]:
        """Questions per second."""
        return tuple(1000 * batch_size / each for each in self.milliseconds)


def measure(device: torch.device, assumed: Assumptions, workload: Workload = PAPER) -> Part:
    """Measured figures beside estimates; none without a GPU."""
    if device.type != "cuda":
        return Part()
    gpu, dtype = find_gpu(torch.cuda.get_device_name(device)), choose_dtype("auto", device)
    figures = measure_steps(device, dtype, workload)
    return Part(details=compare(figures, workload, gpu, dtype, assumed))


def measure_steps(device: torch.device, dtype: torch.dtype, workload: Workload) -> StepFigures:
    """Time steps that read through the loader, and steps on one batch, in turns."""
    torch.manual_seed(0)
    model = workload.build_model().to(device).train()
    optimizer = make_optimizer(model, (0.9, 0.98), 1e-9)
    stepper = Stepper(model, optimizer, World(0, 1, device), dtype)
    is_cuda = device.type == "cuda"
    if is_cuda:
        torch.cuda.reset_peak_memory_stats(device)
    with tempfile.TemporaryDirectory(prefix="estimates-") as name:
        loader = make_loader(Path(name, "store.h5"), workload, pin=is_cuda)
        works = make_works(stepper, loader, workload)
        times = interleave(works, device, workload.rounds, "steps from the loader")
        loader.stores.close()
    shares = [100 * max(0.0, 1 - share) for share in ratios(times["one batch"], times["loader"])]
    peak = torch.cuda.max_memory_allocated(device) if is_cuda else 0
    per_step = tuple(each / workload.num_steps for each in times["loader"])
    return StepFigures(per_step, tuple(shares), peak)


def make_works(stepper: Stepper, loader: Loader, workload: Workload) -> dict[str, Work]:
    """As many steps on batches of the loader, and on one that is there already."""
    sampler = TrainingSampler(loader.shapes, workload.batch_size, seed=0)
    there = make_batch([workload.grid] * workload.batch_size, workload.num_cells, workload.sizes)
    if loader.pin:
        there = pin_batch(there)

    def from_loader() -> None:
        batches = loader.iterate(sampler.micro_batches(0))
        for number, batch in enumerate(copy_ahead(batches, stepper.world.device)):
            stepper.step([batch], number, 1e-4, stop=False)

    def on_one_batch() -> None:
        for number in range(workload.num_steps):
            stepper.step([there], number, 1e-4, stop=False)

    return {"loader": from_loader, "one batch": on_one_batch}


def pin_batch(batch: Batch) -> Batch:
    """A batch in pinned memory, as the loader gives it."""
    names = ("features", "tokens", "targets", "question_ids")
    return replace(batch, **{name: getattr(batch, name).pin_memory() for name in names})


def make_loader(path: Path, workload: Workload, pin: bool) -> Loader:
    """Questions for `num_steps` steps about made-up images of one grid."""
    generator, sizes = np.random.default_rng(0), workload.sizes
    rows = generator.exponential(size=(workload.num_cells, sizes.num_features))
    shapes = dict.fromkeys(range(1, workload.num_images + 1), workload.grid)
    with StoreWriter(path, shapes, sizes.num_features, source="made up", backbone="R-50") as store:
        for image_id in shapes:
            store.write(image_id, rows.astype(np.float16))
    per_image = workload.num_steps * workload.batch_size / workload.num_images
    examples = ask_questions(workload.num_images, per_image, sizes.num_words, sizes.num_answers)
    return Loader(open_stores([path]), examples, sizes.num_answers, keep=2, pin=pin)


def compare(
    figures: StepFigures,
    workload: Workload,
    gpu: str | None,
    dtype: torch.dtype,
    assumed: Assumptions,
) -> list[Measurement]:
    """The figures, each beside the estimate of `make cost`; of time only for a GPU of its table.

    Its estimate is that of computing: the page cache is no disk.
    """
    cost, size = workload.count(dtype), workload.batch_size
    seconds = assumed.time_step(cost, GPUS[gpu], dtype, 1, 0, 0)[0] if gpu else None
    name = str(dtype).removeprefix("torch.")
    title = f"training step, {size} questions, {workload.num_cells} cells, {name}"
    return [
        Measurement(title, figures.milliseconds, "ms", seconds and 1000 * seconds),
        Measurement("speed", figures.speeds(size), "questions/s", seconds and size / seconds),
        Measurement("peak memory", (figures.peak_bytes / 1e9,), "GB", cost.memory_bytes / 1e9),
        Measurement("share of loading", figures.loading_shares, "%"),
    ]
