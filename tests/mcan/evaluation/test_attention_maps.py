"""Attention as a distribution over cells: the weights, or the mass of a density in each."""

from dataclasses import replace

import pytest
import torch
from scipy.stats import multivariate_normal

import attention
from attention import AttentionOutput, Grid, Mixture
from mcan import MCAN
from mcan.evaluation.attention_maps import AT_A_TIME, map_attention, spread_over_cells
from tests.mcan.evaluation.test_predict import make_batch
from tests.mcan.training.small_steps import SIZES
from tests.small_runs import ALONE

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

SHAPES = [(4, 5), (3, 4), (5, 4)]


def ask(count, shapes=SHAPES):
    """Questions 100, 101, … about random images of the given shapes in turn."""
    generator = torch.Generator().manual_seed(0)
    sizes = tuple(shapes[n % len(shapes)] for n in range(count))
    features = torch.randn(count, max(h * w for h, w in sizes), 5, generator=generator)
    for row, (height, width) in zip(features, sizes, strict=True):
        row[height * width :] = 0
    tokens = torch.randint(1, 9, (count, 6), generator=generator)
    return make_batch(features, sizes, tokens, torch.arange(100, 100 + count))


def part(asked, rows):
    sizes = tuple(asked.sizes[n] for n in rows)
    longest = max(height * width for height, width in sizes)
    return make_batch(
        asked.features[rows][:, :longest], sizes, asked.tokens[rows], asked.question_ids[rows]
    )


def make_model(name, **options):
    torch.manual_seed(0)
    model = MCAN(SIZES, attention.build(name, **options))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # so that attention is uneven
    return model


HEADS = [("discrete", {}), ("unimodal", {}), ("multimodal", {"lam": 0.0, "num_restarts": 1})]


@pytest.mark.parametrize(("name", "options"), HEADS)
def test_maps_are_distributions_over_each_grid_and_do_not_depend_on_the_batch(name, options):
    model, asked = make_model(name, **options), ask(AT_A_TIME + 5)
    together = map_attention(model, [asked], 24, ALONE, torch.float32)
    rows = list(range(len(asked.sizes)))
    batches = [part(asked, rows[start::4]) for start in (2, 0, 3, 1)]
    apart = map_attention(model, batches, 24, ALONE, torch.float32)
    assert torch.equal(together.question_ids, asked.question_ids)
    assert torch.equal(apart.question_ids, asked.question_ids)
    torch.testing.assert_close(apart.cells, together.cells, atol=1e-5, rtol=1e-4)
    assert torch.equal(apart.num_components, together.num_components)
    assert together.cells.shape == (len(asked.sizes), 24)
    torch.testing.assert_close(together.cells.sum(1), torch.ones(len(rows), dtype=torch.float64))
    for row, (height, width) in zip(together.cells, asked.sizes, strict=True):
        assert (row[: height * width] >= 0).all()
        assert (row[height * width :] == 0).all()
    assert (together.num_components > 0).all() == (name != "discrete")


def test_discrete_attention_is_its_weights():
    model, asked = make_model("discrete").eval(), ask(5)
    found = map_attention(model, [asked], 20, ALONE, torch.float32)
    with torch.no_grad():
        _, attended = model.attend(asked.features, Grid.of(asked.sizes), asked.tokens)
    torch.testing.assert_close(found.cells.float(), attended.weights)
    assert found.cells.max() > 2 * found.cells[0, :20].mean()  # not all even


def test_a_densitys_share_of_a_cell_is_its_integral_within_the_image():
    """Against scipy's probability of every rectangle; one component lies half outside."""
    grid = Grid.of([(3, 4), (2, 2)])
    pi = torch.tensor([[[0.7, 0.3]], [[1.0, 0.0]]], dtype=torch.float64)
    mu = torch.tensor([[[[0.2, 0.3], [0.9, 0.98]]], [[[0.4, 0.6]] * 2]], dtype=torch.float64)
    sigma = torch.tensor([[0.02, 0.01], [0.01, 0.03]], dtype=torch.float64).expand(2, 1, 2, 2, 2)
    mixture = Mixture(pi, mu, sigma, torch.tensor([[2], [1]]))
    attended = AttentionOutput(torch.zeros(2, 1), torch.zeros(2, 12), mixture)
    found = spread_over_cells(attended, grid)
    for image, (height, width) in enumerate(grid.sizes):
        mass = torch.zeros(height, width, dtype=torch.float64)
        for row in range(height):
            for column in range(width):
                low = [row / height, column / width]
                high = [(row + 1) / height, (column + 1) / width]
                for k in range(2):
                    normal = multivariate_normal(
                        mu[image, 0, k].numpy(), sigma[image, 0, k].numpy()
                    )
                    share = normal.cdf(high, lower_limit=low)
                    mass[row, column] += float(pi[image, 0, k]) * share
        expected = (mass / mass.sum()).reshape(-1)
        torch.testing.assert_close(found[image, : height * width], expected, atol=1e-5, rtol=1e-4)
    assert (found[1, 4:] == 0).all()


def test_questions_about_one_image_share_its_features():
    model, asked = make_model("unimodal"), ask(4, [(4, 5)])
    index = torch.tensor([0, 1, 0, 1])
    shared = replace(asked, features=asked.features[:2], image_index=index)
    each = replace(asked, features=asked.features[index])
    one, other = (map_attention(model, [a], 20, ALONE, torch.float32) for a in (shared, each))
    assert torch.equal(one.cells, other.cells)


def test_attention_that_is_not_finite_is_named():
    model = make_model("discrete")
    with torch.no_grad():
        model.pool_image.score_network.score.bias.fill_(torch.nan)
    with pytest.raises(ValueError, match="attention to 3 questions, such as 100, is not finite"):
        map_attention(model, [ask(3)], 20, ALONE, torch.float32)
