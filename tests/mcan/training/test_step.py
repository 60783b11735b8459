"""A step: one gradient for any number of processes and slices; a bad one moves nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import attention
from data.batching.sampler import MicroBatch
from mcan.checkpoint import load_checkpoint
from mcan.runtime.precision import choose_dtype
from mcan.training.step import Stepper
from tests.mcan.runtime.together import run_together
from tests.mcan.training.small_steps import (
    ALONE,
    GLOBAL_BATCHES,
    assert_same_steps,
    build,
    make_stepper,
    run_training,
    slices_of,
    take,
    take_steps,
)
from tests.small_runs import assert_same

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two processes come to, by the name of the work."""
    folder = tmp_path_factory.mktemp("two")
    jobs = {
        "whole": (take_steps, (1,)),
        "slices": (take_steps, (3,)),
        "broken": (run_training, (folder / "broken", [12], None)),
        "stopped": (run_training, (folder / "stopped", [], 1)),
    }
    results = run_together([(2, *job) for job in jobs.values()], folder)
    return {**dict(zip(jobs, results, strict=True)), "folder": folder}


@pytest.fixture(scope="module")
def one():
    return take_steps(ALONE, 1)


def test_the_cases_have_unequal_slices_and_fillers():
    cut = [[len(p.rows) for p in slices_of(rows, ALONE, 3)] for rows in GLOBAL_BATCHES]
    assert any(len(set(sizes)) > 1 for sizes in cut)
    weights = [p.weight for rows in GLOBAL_BATCHES for p in slices_of(rows, ALONE, 3)]
    assert 0.0 in weights


def test_gradients_are_those_of_the_mean_over_the_global_batch():
    """Against torch's own loss on the whole batch."""
    model, rows = build(), GLOBAL_BATCHES[0]
    batch = take(MicroBatch(rows, 1 / len(rows)))
    make_stepper(model).step([batch], 7, rate=0.0, stop=False)
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    logits = model(batch.features, attention.Grid.of(batch.sizes), batch.tokens, step=7)
    each = torch.nn.BCEWithLogitsLoss(reduction="none")(logits, batch.targets.double())
    each.sum(1).mean().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-12, rtol=1e-9)


def test_questions_that_share_an_image_have_the_gradient_of_those_that_do_not():
    rows, index = np.array([0, 1, 2, 3, 4]), torch.tensor([1, 0, 1, 1, 0])
    batch = take(MicroBatch(rows, 1 / len(rows)))
    images = batch.features[:2]
    sizes = batch.sizes[:2]
    own = replace(batch, features=images[index])
    shared = replace(batch, features=images, sizes=sizes, image_index=index)
    models = []
    for each in (own, shared):
        models.append(build())
        result = make_stepper(models[-1]).step([each], 7, rate=0.0, stop=False).read()
        assert result.num_questions == 5
    for (name, a), (_, b) in zip(*(model.named_parameters() for model in models), strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-12, rtol=1e-9, msg=name)


def test_three_micro_batches_equal_one(one):
    assert_same_steps(take_steps(ALONE, 3), one, 1e-9)


@pytest.mark.parametrize("name", ["whole", "slices"])
def test_two_processes_equal_one_at_the_same_global_batch(two, one, name):
    for rank in range(2):
        assert_same_steps(two[name][rank], one, 1e-9)
    assert_same(two[name][0]["weights"], two[name][1]["weights"])


def broken_step(**options):
    model = build(torch.float32)
    stepper = make_stepper(model, **options)
    rows = GLOBAL_BATCHES[0]
    stepper.step([take(MicroBatch(rows, 1 / len(rows)))], 0, rate=1e-3, stop=False)
    return model, stepper, rows


@pytest.mark.parametrize("options", [{}, {"clip": 0.5}, {"dtype": torch.float16}])
def test_a_loss_that_is_not_finite_moves_no_weight_and_names_its_questions(options):
    model, stepper, rows = broken_step(**options)
    weights = {name: p.clone() for name, p in model.state_dict().items()}
    moments = [s["exp_avg"].clone() for s in stepper.optimizer.state.values()]
    pending = stepper.step([take(MicroBatch(rows, 0.2), broken=[2])], 1, rate=1e-3, stop=False)
    result = pending.read()
    assert result.is_nonfinite
    assert result.step == 1
    assert 102 in result.nonfinite_questions
    assert_same(dict(model.state_dict()), weights)
    assert_same([s["exp_avg"] for s in stepper.optimizer.state.values()], moments)
    good = stepper.step([take(MicroBatch(rows, 0.2))], 2, rate=1e-3, stop=False).read()
    assert not good.is_nonfinite
    assert good.nonfinite_questions == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_an_overflowing_logit_is_nonfinite_though_its_gradient_is_finite(dtype):
    model = build(torch.float32)
    with torch.no_grad():
        model.classify.bias[0] = torch.inf
    weights = {name: p.clone() for name, p in model.state_dict().items()}
    stepper = make_stepper(model, dtype=dtype)
    result = stepper.step(
        [take(MicroBatch(GLOBAL_BATCHES[0], 0.2))], 0, rate=1e-3, stop=False
    ).read()
    assert result.is_nonfinite
    assert_same(dict(model.state_dict()), weights)


def test_a_broken_question_ends_all_processes_with_the_same_words(two):
    """It is in step 2; the first process writes, and reads its pending early, at every step."""
    first, second = two["broken"]
    assert first["error"].startswith("FloatingPointError: loss or gradient of step 2 is not finite")
    assert "112" in first["error"]
    assert "101" not in first["error"]  # of another step
    assert first["error"] == second["error"]
    saved = sorted(path.name for path in (two["folder"] / "broken").glob("step_*.pt"))
    assert saved == ["step_00000001.pt", "step_00000002.pt"]
    last = load_checkpoint(two["folder"] / "broken" / "last.pt")
    assert last["progress"]["global_step"] == 2


def test_one_process_asked_to_stop_stops_all_at_the_same_step(two):
    first, second = two["stopped"]
    assert first["error"].startswith("StoppedOnRequestError")
    assert first["error"] == second["error"]
    assert first["progress"] == second["progress"]
    assert_same(first["weights"], second["weights"])
    last = load_checkpoint(two["folder"] / "stopped" / "last.pt")
    assert last["progress"]["global_step"] == first["progress"].global_step == 4
    assert_same(dict(last["model"]), dict(first["weights"]))


def test_a_broken_question_ends_a_run_and_its_weights_are_from_before(tmp_path):
    result = run_training(ALONE, tmp_path / "run", [5], None)
    assert "step 1 is not finite (questions: 105)" in result["error"]
    assert load_checkpoint(tmp_path / "run" / "last.pt")["progress"]["global_step"] == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_moves_the_weights_and_lowers_the_loss(dtype):
    model = build(torch.float32)
    stepper = make_stepper(model, dtype=dtype)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    batch = take(MicroBatch(GLOBAL_BATCHES[0], 0.2))
    results = [stepper.step([batch], 0, rate=1e-2, stop=False).read() for _ in range(12)]
    assert not any(result.is_nonfinite for result in results)
    assert results[-1].loss < 0.9 * results[0].loss
    moved = [not torch.equal(p, before[name]) for name, p in model.named_parameters()]
    assert sum(moved) > 0.9 * len(moved)
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert stepper.scaler.is_enabled() == (dtype is torch.float16)


def test_clipping_limits_the_gradient_and_reports_what_it_was():
    rows, moves, norms = GLOBAL_BATCHES[0], [], []
    for clip in (None, 0.01):
        model = build()
        before = [p.detach().clone() for p in model.parameters()]
        sgd = torch.optim.SGD(model.parameters(), lr=1.0, fused=True)
        stepper = Stepper(model, sgd, ALONE, clip=clip)
        result = stepper.step([take(MicroBatch(rows, 0.2))], 0, rate=0.5, stop=False).read()
        change = [p - b for p, b in zip(model.parameters(), before, strict=True)]
        moves.append(torch.cat([c.flatten() for c in change]).norm().item())
        norms.append(result.gradient_norm)
    assert norms[0] == pytest.approx(norms[1])
    assert norms[0] > 0.02
    assert moves[0] == pytest.approx(0.5 * norms[0], rel=1e-5)
    assert moves[1] == pytest.approx(0.5 * 0.01, rel=1e-3)


def test_precision_is_chosen_by_name_and_auto_is_float32_on_a_cpu():
    cpu = torch.device("cpu")
    chosen = [choose_dtype(name, cpu) for name in ("auto", "float32", "bfloat16", "float16")]
    assert chosen == [torch.float32, torch.float32, torch.bfloat16, torch.float16]
    with pytest.raises(ValueError, match=r"precision must be auto, float32.*'int8'"):
        choose_dtype("int8", cpu)


def test_a_filler_counts_for_nothing():
    batch = take(MicroBatch(GLOBAL_BATCHES[0], 0.2))
    filler = take(MicroBatch(GLOBAL_BATCHES[2][:1], 0.0))
    results = [
        make_stepper(build()).step(batches, 0, rate=0.0, stop=False).read()
        for batches in ([batch], [batch, filler])
    ]
    assert results[0].num_questions == results[1].num_questions == 5
    assert results[0].loss == results[1].loss
    assert math.isclose(results[0].gradient_norm, results[1].gradient_norm, rel_tol=1e-6)
