"""Training steps and evaluation batches on a CUDA device that does not exist: what would wait.

`python -m tests.fake_cuda.trace` prints a JSON object: for every case the operations that make the
CPU wait for the GPU, the number of operations, and what the LSTM computes in.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    FakeTensorDeviceMismatchError,
)

import attention
import mcan
from attention.seeding import training_draw
from data.batching.batch import Batch
from mcan.evaluation.predict import answer_batch
from mcan.runtime.distributed import World
from mcan.training.step import Stepper, make_optimizer
from tests.attention.examples import head_variants, name_variant
from tests.fake_cuda.device import CUDA, fake_cuda
from tests.fake_cuda.watch import Watch

SIZES = mcan.Sizes(20, 10, 16, 8, 16, num_layers=1, num_heads=2, pooling=8, output=16)
STEP = next(step for step in itertools.count() if training_draw(0, step, 4)[0] == 3)  # components
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
GRIDS = {"uniform": ((8, 10),) * 3, "mixed": ((8, 10), (10, 8), (4, 5))}
HEADS: dict[str, dict[str, Any]] = {
    **{name_variant((name, more)): {"name": name, **more} for name, more in head_variants()},
    "multimodal, weighted starts": {"name": "multimodal", "init": "weighted"},
    "multimodal, batch": {"name": "multimodal", "selection": "batch", "floor": "cell"},
    "multimodal, spherical": {"name": "multimodal", "covariance": "spherical"},
}
# the first iteration of EM and one like all that follow
FEW = {"multimodal": {"train_iterations": 2, "test_iterations": 2}}


def main() -> None:
    """Trace every case, twice if it waited: what is made once per grid shape may be copied once."""
    found = {}
    batches = {name: make_batches(sizes) for name, sizes in GRIDS.items()}
    with fake_cuda():
        for name, work in list_cases(batches):
            for _ in range(2):
                with Watch() as watch:
                    try:
                        work()
                    except (DataDependentOutputException, FakeTensorDeviceMismatchError) as error:
                        watch.waits.append(str(error))
                if not watch.waits:
                    break
            found[name] = {
                "waits": watch.waits,
                "operations": watch.num_operations,
                "lstm": sorted(watch.lstm_dtypes),
            }
    print(json.dumps(found))


def make_batches(sizes: tuple[tuple[int, int], ...]) -> tuple[Batch, Batch]:
    """Real tensors on the CPU: three questions about three images, and about two shared ones."""
    ids = torch.arange(3)
    features = torch.zeros(3, 80, SIZES.num_features, dtype=torch.float16)
    tokens, targets = torch.ones(3, 2, dtype=torch.int64), torch.zeros(3, SIZES.num_answers)
    index = torch.tensor([0, 0, 1])
    own = Batch(features, sizes, None, tokens, targets, ids, ids, 1 / 3)
    shared = Batch(features[:2], sizes[:2], index, tokens, targets, ids, ids, 1 / 3)
    return own, shared


def list_cases(
    batches: dict[str, tuple[Batch, Batch]],
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every head, dtype and kind of grid: the forward pass and loss of a step, an evaluation.

    A head computes in float64 and sees no images, so for its other options one dtype and images
    that are not shared are enough.
    """
    world = World(0, 1, CUDA)
    for head, dtype, grid in itertools.product(HEADS, DTYPES, GRIDS):
        has_options = HEADS[head].keys() != {"name"}
        if has_options and dtype != "bfloat16":
            continue
        with torch.device(CUDA):
            model = mcan.MCAN(
                SIZES, attention.build(**HEADS[head], **FEW.get(HEADS[head]["name"], {}))
            )
        stepper = Stepper(model, make_optimizer(model, (0.9, 0.98), 1e-9), world, DTYPES[dtype])
        own, shared = batches[grid]
        yield f"training, {head}, {dtype}, {grid} grids", train(stepper, own)
        if not has_options:
            yield (
                f"training on shared images, {head}, {dtype}, {grid} grids",
                train(stepper, shared),
            )
        yield (
            f"evaluation, {head}, {dtype}, {grid} grids",
            torch.no_grad()(lambda: answer_batch(model, shared, world, DTYPES[dtype])),  # noqa: B023
        )
    x = torch.zeros(2, 6, device=CUDA)
    yield "a list as an index", lambda: x[..., [0, 1, 3]]
    yield "a tensor from the CPU", lambda: x + torch.ones(6)
    yield "a number read back", lambda: float(x.sum())
    yield "a blocking copy", lambda: torch.ones(6).to(CUDA)


def train(stepper: Stepper, batch: Batch) -> Callable[[], object]:
    """The step's part before the gradients, which a fake device has not."""

    def work() -> object:
        stepper.model.train()
        return stepper._accumulate(batch, STEP)

    return work


if __name__ == "__main__":
    main()
