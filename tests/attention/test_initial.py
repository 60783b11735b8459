import numpy as np
import pytest
import torch

import attention
from attention.initial import inverse_cdf
from attention.seeding import restart_draw, training_draw
from tests.attention.examples import smooth_weights

CPU = torch.device("cpu")


def test_seeds_and_steps_of_any_whole_number_type_are_the_same_seeds():
    plain, numpy = training_draw(3, 5, 4), training_draw(np.int64(3), np.int32(5), 4)
    assert plain[0] == numpy[0]
    assert torch.equal(plain[1], numpy[1])


def test_every_number_of_components_is_drawn_about_equally_often():
    drawn = torch.tensor([training_draw(0, step, 4)[0] for step in range(2000)])
    counts = drawn.bincount(minlength=5)[1:]
    assert counts.sum() == 2000
    assert counts.min() > 420  # four standard deviations below 500


def test_restarts_of_one_size_do_not_depend_on_the_largest_size_or_their_number():
    (sizes, four), (fewer, three) = restart_draw(0, 4, 3, CPU), restart_draw(0, 3, 2, CPU)
    assert sizes == (1, 2, 2, 2, 3, 3, 3, 4, 4, 4)
    assert fewer == (1, 2, 2, 3, 3)
    assert torch.equal(four[1:3, :2], three[1:3, :2])
    assert torch.equal(four[4:6, :3], three[3:5])
    assert not torch.equal(four[1], four[2])


def test_weighted_means_follow_the_weights():
    grid = attention.Grid.of([(4, 5)])
    weights = smooth_weights(1, grid)
    uniforms = torch.rand(60000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    points = inverse_cdf(uniforms, weights, grid)[0]
    cell = (points * torch.tensor([4, 5])).floor().long() @ torch.tensor([5, 1])
    share = cell.bincount(minlength=20) / 60000
    torch.testing.assert_close(share, weights[0].float(), atol=0.01, rtol=0)
    within = points * torch.tensor([4, 5]) % 1  # spread evenly over each cell
    torch.testing.assert_close(within.mean(0), torch.tensor([0.5, 0.5]).double(), atol=0.01, rtol=0)
    torch.testing.assert_close(within.var(0), torch.full((2,), 1 / 12).double(), atol=0.01, rtol=0)


@pytest.mark.parametrize("cell", [0, 7, 19])
def test_weighted_means_of_a_one_hot_image_lie_in_its_cell(cell):
    grid = attention.Grid.of([(4, 5), (9, 9)])  # padded, so that there are cells behind the last
    weights = torch.zeros(2, 81, dtype=torch.float64)
    weights[0, cell] = 1
    weights[1, 0] = 1
    edge = torch.tensor([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]], dtype=torch.float64)
    points = inverse_cdf(edge, weights, grid)[0]
    offset = (points - grid.positions[0, cell]).abs()
    assert (offset <= torch.tensor([1 / 8, 1 / 10]) + 1e-9).all()


def test_weighted_means_never_coincide():
    grid = attention.Grid.of([(4, 5)])
    one_hot = torch.zeros(1, 20, dtype=torch.float64)
    one_hot[0, 3] = 1
    points = inverse_cdf(restart_draw(0, 4, 1, CPU)[1][-1], one_hot, grid)[0]
    assert len({tuple(p.tolist()) for p in points}) == 4
