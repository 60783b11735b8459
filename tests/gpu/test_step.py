"""A step on a GPU waits for nothing, learns in half precision, and a bad one moves nothing."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import attention
from data.batches import Piece
from mcan.processes import World
from tests.gpu.device_steps import build, refusing_to_wait, start, take_pinned, take_steps
from tests.mcan.small_steps import ALONE, GLOBAL_BATCHES
from tests.small_runs import assert_same

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

ROWS = GLOBAL_BATCHES[0]
HALVES = [Piece(ROWS[:3], 1 / len(ROWS)), Piece(ROWS[3:], 1 / len(ROWS))]
STEPS = range(6)  # among which every number of components is drawn
MOST_OPERATIONS = 500  # some are several kernels, and a stream takes a thousand before hosts wait


def test_every_number_of_components_is_among_the_steps():
    drawn = {attention.initial.training_draw(0, step, 4)[0] for step in STEPS}
    assert drawn == {1, 2, 3, 4}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("head", attention.available())
def test_a_step_waits_for_nothing(device, head, dtype):
    """After a first round, which fills the caches that depend on the grid's shape."""
    _, stepper = start(device, head, dtype=dtype, dropout=0.1, clip=5.0)
    batches = [take_pinned(piece, device) for piece in HALVES]
    for step in STEPS:
        stepper.step(batches, step, rate=1e-3, stop=False).read()
    with refusing_to_wait(device):
        reports = [stepper.step(batches, step, rate=1e-3, stop=False) for step in STEPS]
    readings = [report.read() for report in reports]
    assert not any(reading.is_bad for reading in readings)
    assert [reading.num_questions for reading in readings] == [len(ROWS)] * len(STEPS)


class Counter(TorchDispatchMode):
    """How many operations are sent to the device; views are not."""

    num_operations = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.num_operations += not function.is_view
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("head", attention.available())
def test_a_step_returns_while_the_device_is_still_busy(device, head):
    """The debug mode does not see every wait; behind a device that sleeps, every wait shows.

    The CPU shows that the step is small enough for a stream to take it whole.
    """
    model, stepper = start(device, head)
    if head == "multimodal":
        model.pool_image.head.train_iterations = 1
    batch = take_pinned(Piece(ROWS, 1 / len(ROWS)), device)
    step = next(s for s in STEPS if attention.initial.training_draw(0, s, 4)[0] == 4)
    for _ in range(3):
        stepper.step([batch], step, rate=1e-3, stop=False).read()
    if device.type == "cuda":
        torch.cuda.synchronize()
        awake = torch.cuda.Event()
        torch.cuda._sleep(4_000_000_000)  # cycles: seconds
        awake.record()
        report = stepper.step([batch], step, rate=1e-3, stop=False)
        still_asleep = not awake.query()
        assert not report.read().is_bad
        assert still_asleep
    else:
        with Counter() as counter:
            stepper.step([batch], step, rate=1e-3, stop=False)
        assert 100 < counter.num_operations < MOST_OPERATIONS


@pytest.mark.parametrize("head", attention.available())
def test_bfloat16_learns_like_float32(device, head):
    batch = take_pinned(Piece(ROWS, 1 / len(ROWS)), device)
    losses, gradients = {}, {}
    for dtype in (torch.float32, torch.bfloat16):
        model, stepper = start(device, head, dtype=dtype)
        readings = [stepper.step([batch], 0, rate=2e-3, stop=False).read()]
        gradients[dtype] = torch.cat([p.grad.flatten().cpu() for p in model.parameters()])
        readings += [stepper.step([batch], 0, rate=2e-3, stop=False).read() for _ in range(30)]
        losses[dtype] = torch.tensor([reading.loss for reading in readings])
    alike = torch.cosine_similarity(*gradients.values(), dim=0)
    assert alike > 0.99
    exact, rounded = losses.values()
    assert exact[-1] < 0.8 * exact[0]
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_loss_that_is_not_finite_moves_no_weight(device, dtype):
    model, stepper = start(device, "multimodal", dtype=dtype)
    good = take_pinned(Piece(ROWS, 1 / len(ROWS)), device)
    bad = take_pinned(Piece(ROWS, 1 / len(ROWS)), device, broken=(2,))
    stepper.step([good], 0, rate=1e-3, stop=False)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    moments = [state["exp_avg"].clone() for state in stepper.optimizer.state.values()]
    reading = stepper.step([bad], 1, rate=1e-3, stop=False).read()
    assert reading.is_bad
    assert 102 in reading.suspects
    assert_same(dict(model.state_dict()), weights)
    assert_same([state["exp_avg"] for state in stepper.optimizer.state.values()], moments)
    for step in range(2, 10):  # in float16 the first few only find a scale that does not overflow
        assert not stepper.step([good], step, rate=1e-3, stop=False).read().is_bad
    assert not torch.equal(model.classify.bias, weights["classify.bias"])


@pytest.mark.cuda
def test_a_gpu_takes_the_steps_of_the_cpu():
    """Fused Adam included; in float64, so that nothing but an error could tell them apart."""
    own, expected = take_steps(World(0, 1, torch.device("cuda", 0)), 2), take_steps(ALONE, 1)
    for name, weight in expected["weights"].items():
        torch.testing.assert_close(own["weights"][name], weight, atol=1e-7, rtol=0, msg=name)
    for one, other in zip(own["losses"], expected["losses"], strict=True):
        assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("head", attention.available())
def test_answers_are_those_of_the_cpu(device, head):
    """In float64, at test time: K* is chosen from the same likelihoods."""
    batch = take_pinned(Piece(ROWS, 1.0), torch.device("cpu"))
    outputs = []
    for place in (device, torch.device("cpu")):
        model = build(place, head).double().eval()
        with torch.inference_mode():
            grid = attention.Grid.of(batch.sizes, device=place)
            outputs.append(model(batch.features.to(place), grid, batch.tokens.to(place)).cpu())
    torch.testing.assert_close(*outputs, atol=1e-7, rtol=1e-7)
