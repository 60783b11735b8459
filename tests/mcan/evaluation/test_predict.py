"""Answers of one pass under every number of components, and answers of an ensemble."""

import math
import weakref
from dataclasses import replace

import pytest
import torch

import attention
import mcan
from data.batching.batch import Batch
from mcan.evaluation.every_k import answer_candidates, answer_every_k
from mcan.evaluation.predict import (
    Predictions,
    answer_batch,
    attend,
    count_collapsed,
    gather_rows,
    join_rows,
    predict,
    predict_ensemble,
)
from tests.mcan.training.small_steps import ALONE, SIZES

GRIDS = [(10, 8), (7, 12), (11, 11)]
LAMS = (0, 0.3, 1, 3)


def make_batch(features, sizes, tokens, question_ids, image_index=None):
    """A batch to answer."""
    return Batch(features, sizes, image_index, tokens, None, question_ids, question_ids, 1.0)


def ask(grids=GRIDS, first_id=0):
    """One batch per grid, with two questions about each image; ids go down within a batch."""
    generator = torch.Generator().manual_seed(1)
    batches = []
    for number, grid in enumerate(grids):
        count = 6
        ids = first_id + 100 * number + torch.arange(2 * count).flip(0)
        features = 3 * torch.randn(count, grid[0] * grid[1], 5, generator=generator)
        tokens = torch.randint(1, 12, (2 * count, 4), generator=generator)
        index = torch.arange(2 * count) // 2
        batches.append(make_batch(features, (grid,) * count, tokens, ids, index))
    return batches


def build(name="multimodal", seed=3, **options):
    """A model with peaky attention, whose answers depend on what it sees."""
    torch.manual_seed(seed)
    model = mcan.MCAN(SIZES, attention.build(name, **options), dropout=0.0)
    with torch.no_grad():
        model.pool_image.score_network.score.weight *= 40
        model.pool_image.merge.weight *= 20
        model.classify.weight *= 5
    return model


def choose(candidates, lam, k_max):
    """What is predicted with the mixtures that a λ and a k_max select."""
    selected = candidates.select(lam, k_max)
    names = ("answers", "probabilities", "num_collapsed")
    chosen = {n: getattr(candidates, n).gather(1, selected[:, None] - 1)[:, 0] for n in names}
    others = dict.fromkeys(("perplexity", "zero_weight_share", "outside_support_share"))
    return Predictions(candidates.question_ids, num_components=selected, **chosen, **others)


def assert_same_rows(one, other):
    for name in ("question_ids", "answers", "num_components", "num_collapsed"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    torch.testing.assert_close(one.probabilities, other.probabilities)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"floor": "cell", "selection": "batch"},
        {"floor": "cell", "penalty": "parameters", "init": "weighted", "covariance": "spherical"},
    ],
)
def test_candidates_give_what_a_pass_with_that_penalty_and_limit_gives(options):
    full = build(k_max=4, num_restarts=2, test_iterations=4, **options)
    candidates = answer_candidates(full, ask(), ALONE, torch.float32)
    seen = set()
    for k_max in (1, 2, 3, 4):
        plain = build(k_max=k_max, num_restarts=2, test_iterations=4, **options)
        for lam in LAMS:
            plain.pool_image.head.lam = lam
            expected = predict(plain, ask(), ALONE, torch.float32)
            assert_same_rows(choose(candidates, lam, k_max), expected)
            seen.update(expected.num_components.tolist())
    assert len(seen) >= 3  # the penalty really selects
    assert len({tuple(row) for row in candidates.answers.tolist()}) > 3
    assert bool((candidates.answers != candidates.answers[:, :1]).any())  # k changes an answer


def test_of_the_models_own_limit_even_the_probabilities_are_the_same_bits():
    model = build(k_max=3, lam=0.3, floor="cell")
    candidates = answer_candidates(model, ask(), ALONE, torch.float32)
    plain = predict(model, ask(), ALONE, torch.float32)
    assert torch.equal(choose(candidates, 0.3, 3).probabilities, plain.probabilities)


def test_in_bfloat16_too_the_candidates_give_the_plain_answers():
    for lam in (0, 0.5, 5):
        model = build(k_max=3, lam=lam, floor="cell")
        candidates = answer_candidates(model, ask(), ALONE, torch.bfloat16)
        assert_same_rows(choose(candidates, lam, 3), predict(model, ask(), ALONE, torch.bfloat16))


def test_heads_that_select_nothing_have_no_candidates():
    for name in ("discrete", "unimodal"):
        with pytest.raises(ValueError, match="no λ to select"):
            answer_candidates(build(name), ask(), ALONE, torch.float32)


@torch.no_grad()
def test_an_ensemble_gives_the_answer_of_the_highest_mean_probability():
    models = [build("discrete", 1), build("multimodal", 2, k_max=2), build("unimodal", 3)]
    together = predict_ensemble(models, ask(), ALONE, torch.float32)
    expected = {}
    for batch in ask():
        images = batch.image_index.tolist()
        rows = zip(batch.question_ids.tolist(), images, batch.tokens, strict=True)
        for number, image, tokens in rows:  # one question at a time, through the plain forward
            grid = attention.Grid.of([batch.sizes[image]])
            mean = sum(
                model.eval()(batch.features[image][None], grid, tokens[None])[0].sigmoid()
                for model in models
            ) / len(models)
            expected[number] = (int(mean.argmax()), float(mean.max()))
    assert together.question_ids.tolist() == sorted(expected)
    assert together.answers.tolist() == [expected[n][0] for n in sorted(expected)]
    means = torch.tensor([expected[n][1] for n in sorted(expected)])
    torch.testing.assert_close(together.probabilities, means, rtol=1e-4, atol=1e-5)
    alone = [predict(model, ask(), ALONE, torch.float32).answers for model in models]
    assert all(bool((together.answers != each).any()) for each in alone)


def test_collapsed_components_are_those_in_use_without_area():
    """A determinant below 1e-8: of 1e-4, 8.1e-9, 1.21e-8 and, of a line across, 5e-9."""
    sigma = torch.tensor(
        [
            [[1e-2, 0], [0, 1e-2]],
            [[0.9e-4, 0], [0, 0.9e-4]],
            [[1.1e-4, 0], [0, 1.1e-4]],
            [[1e-2, 0.999975e-2], [0.999975e-2, 1e-2]],
        ],
        dtype=torch.float64,
    )
    zeros = torch.zeros(1, 3, 4).double()
    mixture = attention.Mixture(
        zeros, zeros[..., None].expand(1, 3, 4, 2), sigma.expand(1, 3, 4, 2, 2),
        torch.tensor([[1, 2, 4]]),
    )  # fmt: skip
    assert count_collapsed(mixture).tolist() == [[0, 1, 2]]


def make_mixed_batch():
    """Three questions about three images of different grids, padded to the largest."""
    generator = torch.Generator().manual_seed(2)
    features = 3 * torch.randn(3, 121, 5, generator=generator)
    tokens = torch.randint(1, 12, (3, 4), generator=generator)
    return make_batch(features, tuple(GRIDS), tokens, torch.tensor([5, 6, 7]))


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax"])
def test_the_perplexity_is_the_number_of_cells_over_which_weights_are_spread(normaliser):
    model, batch = build("discrete", normaliser=normaliser), make_mixed_batch()
    _, attended = attend(model, batch, ALONE, torch.float32)
    found = predict(model, [batch], ALONE, torch.float32).perplexity
    rows = [[weight for weight in row if weight > 0] for row in attended.weights.tolist()]
    expected = [math.prod(weight**-weight for weight in row) for row in rows]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)
    score = model.pool_image.score_network.score
    torch.nn.init.zeros_(score.weight)
    even = predict(model, [batch], ALONE, torch.float32).perplexity
    assert even.tolist() == pytest.approx([height * width for height, width in GRIDS], rel=1e-5)


@pytest.mark.parametrize("normaliser", ["entmax15", "sparsemax"])
@pytest.mark.parametrize("name", ["discrete", "multimodal"])
def test_zero_weights_are_counted_over_the_real_cells_alone(name, normaliser):
    model, batch = build(name, normaliser=normaliser), make_mixed_batch()
    _, attended = attend(model, batch, ALONE, torch.float32)
    found = predict(model, [batch], ALONE, torch.float32).zero_weight_share
    sizes = [height * width for height, width in GRIDS]
    weights = [row[:size].tolist() for row, size in zip(attended.weights, sizes, strict=True)]
    expected = [row.count(0.0) / len(row) for row in weights]
    assert found.tolist() == pytest.approx(expected, abs=1e-7)
    assert all(0.1 < share < 1 for share in expected)


@pytest.mark.parametrize("name", ["unimodal", "multimodal"])
def test_the_image_outside_the_support_is_where_no_component_reaches(name):
    model, batch = build(name, density="paraboloid", floor="cell"), make_mixed_batch()
    if name == "multimodal":
        model.pool_image.head.lam = 0.1
    _, attended = attend(model, batch, ALONE, torch.float32)
    found = predict(model, [batch], ALONE, torch.float32).outside_support_share
    mixture, places = attended.mixture, (torch.arange(64).double() + 0.5) / 64
    for row, share in enumerate(found.tolist()):
        is_reached = torch.zeros(64, 64, dtype=torch.bool)
        for k in range(int(mixture.num_components[row, 0])):
            row_k, column_k = mixture.mu[row, 0, k]
            u, v = (places - row_k)[:, None], (places - column_k)[None]
            offsets = torch.stack(torch.broadcast_tensors(u, v), -1)
            inverse = torch.linalg.inv(mixture.sigma[row, 0, k])
            is_reached |= torch.einsum("rci,ij,rcj->rc", offsets, inverse, offsets) < 6
        assert share == pytest.approx(1 - float(is_reached.double().mean()), abs=1e-3)
        assert 0.05 < share < 1


def test_softmax_and_gaussians_and_ensembles_have_no_sparsity():
    models = [build("discrete"), build("multimodal", k_max=2), build("unimodal")]
    together = predict_ensemble(models, ask(), ALONE, torch.float32)
    for found in [together, *(predict(model, ask(), ALONE, torch.float32) for model in models)]:
        assert found.zero_weight_share.isnan().all()
        assert found.outside_support_share.isnan().all()


def test_nothing_comes_to_the_cpu_before_all_batches_are_answered(monkeypatch):
    events, fetch = [], torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda own: events.append("cpu") or fetch(own))

    def answer():
        for number in (2, 0, 1):
            events.append("batch")
            yield torch.tensor([number]), torch.tensor([10 * number])

    ids, answers = gather_rows(answer(), ALONE)
    assert (ids.tolist(), answers.tolist()) == ([0, 1, 2], [0, 10, 20])
    assert events == ["batch"] * 3 + ["cpu"] * 2


def test_of_many_batches_few_tensors_stay_until_the_last():
    rows, most_alive = [], 0

    def answer():
        nonlocal most_alive
        for number in range(1000):
            row = torch.tensor([number]), torch.tensor([-number])
            rows.extend(map(weakref.ref, row))
            most_alive = max(most_alive, sum(each() is not None for each in rows))
            yield row

    ids, answers = join_rows(answer())
    assert ids.tolist() == [-answer for answer in answers.tolist()] == list(range(1000))
    assert most_alive <= 6  # of this batch, the one before, and the last that has no partner


@pytest.mark.parametrize("answer", [answer_batch, answer_every_k])
@torch.inference_mode()
def test_what_stays_of_a_batch_does_not_hold_its_features_or_attention(answer):
    (batch,) = ask(GRIDS[:1])
    rows = answer(build(k_max=4), batch, ALONE, torch.float32)
    kept = sum(column.untyped_storage().nbytes() for column in rows)
    assert kept <= 40 * 4 * len(batch.question_ids)  # five numbers or fewer for each k, no cell


def test_an_index_on_the_device_is_taken_instead_of_a_copy():
    model, (batch,) = build("discrete"), ask(GRIDS[:1])
    expected = predict(model, [batch], ALONE, torch.float32)
    there = replace(batch, device_index=batch.image_index.clone())
    assert_same_rows(predict(model, [there], ALONE, torch.float32), expected)
    other = replace(batch, device_index=batch.image_index.flip(0))
    changed = predict(model, [other], ALONE, torch.float32)
    assert not torch.equal(changed.probabilities, expected.probabilities)


def test_no_questions_are_said_to_be_none():
    with pytest.raises(ValueError, match="no questions to answer"):
        predict(build("discrete"), [], ALONE, torch.float32)
