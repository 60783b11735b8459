"""Steps on a GPU: no synchronisation, half precision, no update after a non-finite loss."""

import pytest
import torch

import attention
from data.batching.sampler import MicroBatch
from mcan.cost.operations import OperationLog
from mcan.runtime.distributed import World
from tests.attention.examples import every_variant
from tests.gpu.device_steps import (
    MULTIMODAL,
    build,
    start,
    synchronisation_forbidden,
    take_device_steps,
    take_pinned,
)
from tests.mcan.training.small_steps import ALONE, GLOBAL_BATCHES, assert_same_steps
from tests.small_runs import assert_same

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

ROWS = GLOBAL_BATCHES[0]
HALVES = [MicroBatch(ROWS[:3], 1 / len(ROWS)), MicroBatch(ROWS[3:], 1 / len(ROWS))]
STEPS = range(6)  # every number of components is drawn in one of them
MOST_OPERATIONS = 600  # some are several kernels, and a stream queues a thousand without blocking


def test_the_steps_cover_every_number_of_components():
    drawn = {attention.seeding.training_draw(0, step, 4)[0] for step in STEPS}
    assert drawn == {1, 2, 3, 4}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@every_variant
def test_a_step_does_not_synchronise(device, variant, dtype):
    """After a first round on a GPU, which fills the caches for the grid shapes."""
    _, stepper = start(device, variant, dtype=dtype, dropout=0.1, clip=5.0)
    batches = [take_pinned(micro_batch, device) for micro_batch in HALVES]
    for step in STEPS if device.type == "cuda" else ():
        stepper.step(batches, step, rate=1e-3, stop=False).read()
    with synchronisation_forbidden(device):
        pending = [stepper.step(batches, step, rate=1e-3, stop=False) for step in STEPS]
    results = [each.read() for each in pending]
    assert not any(result.is_nonfinite for result in results)
    assert [result.num_questions for result in results] == [len(ROWS)] * len(STEPS)


@every_variant
def test_a_step_returns_while_the_device_is_still_busy(device, variant):
    """The debug mode does not detect every synchronisation; with a sleeping device, each one shows.

    On the CPU: the step is small enough to fit into the queue of a stream.
    """
    model, stepper = start(device, variant)
    if variant[0] == "multimodal":
        model.pool_image.head.train_iterations = 1
    batch = take_pinned(MicroBatch(ROWS, 1 / len(ROWS)), device)
    step = next(s for s in STEPS if attention.seeding.training_draw(0, s, 4)[0] == 4)
    for _ in range(3):
        stepper.step([batch], step, rate=1e-3, stop=False).read()
    if device.type == "cuda":
        torch.cuda.synchronize()
        awake = torch.cuda.Event()
        torch.cuda._sleep(4_000_000_000)  # cycles: seconds
        awake.record()
        pending = stepper.step([batch], step, rate=1e-3, stop=False)
        still_asleep = not awake.query()
        assert not pending.read().is_nonfinite
        assert still_asleep
    else:
        log = OperationLog("cpu")
        with log:
            stepper.step([batch], step, rate=1e-3, stop=False)
        assert 100 < log.kernels < MOST_OPERATIONS


@every_variant
def test_bfloat16_learns_like_float32(device, variant):
    batch = take_pinned(MicroBatch(ROWS, 1 / len(ROWS)), device)
    losses, gradients = {}, {}
    for dtype in (torch.float32, torch.bfloat16):
        model, stepper = start(device, variant, dtype=dtype)
        results = [stepper.step([batch], 0, rate=5e-3, stop=False).read()]
        gradients[dtype] = torch.cat([p.grad.flatten().cpu() for p in model.parameters()])
        results += [stepper.step([batch], 0, rate=5e-3, stop=False).read() for _ in range(10)]
        losses[dtype] = torch.tensor([result.loss for result in results])
    alike = torch.cosine_similarity(*gradients.values(), dim=0)
    assert alike > 0.99
    exact, rounded = losses.values()
    assert exact[-1] < 0.8 * exact[0]
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_non_finite_loss_changes_no_weight(device, dtype):
    model, stepper = start(device, MULTIMODAL, dtype=dtype)
    good = take_pinned(MicroBatch(ROWS, 1 / len(ROWS)), device)
    bad = take_pinned(MicroBatch(ROWS, 1 / len(ROWS)), device, broken=(2,))
    stepper.step([good], 0, rate=1e-3, stop=False)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    moments = [state["exp_avg"].clone() for state in stepper.optimizer.state.values()]
    result = stepper.step([bad], 1, rate=1e-3, stop=False).read()
    assert result.is_nonfinite
    assert 102 in result.nonfinite_questions
    assert_same(dict(model.state_dict()), weights)
    assert_same([state["exp_avg"] for state in stepper.optimizer.state.values()], moments)
    for step in range(2, 10):  # in float16 the first few only lower the scale, until all is finite
        assert not stepper.step([good], step, rate=1e-3, stop=False).read().is_nonfinite
    assert not torch.equal(model.classify.bias, weights["classify.bias"])


@pytest.mark.cuda
def test_a_gpu_takes_the_same_steps_as_the_cpu():
    """Including fused Adam; in float64, so that only an error could make them differ."""
    own = take_device_steps(World(0, 1, torch.device("cuda", 0)), 2)
    assert_same_steps(own, take_device_steps(ALONE, 1), 1e-7)


@every_variant
def test_predictions_equal_those_of_the_cpu(device, variant):
    """In float64, at test time: K* is selected from the same likelihoods."""
    batch = take_pinned(MicroBatch(ROWS, 1.0), torch.device("cpu"))
    outputs = []
    for place in (device, torch.device("cpu")):
        model = build(place, variant).double().eval()
        with torch.inference_mode():
            grid = attention.Grid.of(batch.sizes, device=place)
            outputs.append(model(batch.features.to(place), grid, batch.tokens.to(place)).cpu())
    torch.testing.assert_close(*outputs, atol=1e-7, rtol=1e-7)
