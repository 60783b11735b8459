import pytest
import torch

import attention


def test_cell_centres_run_row_by_row_through_the_unit_square():
    positions = attention.Grid.of([(2, 3)]).positions[0]
    expected = [[row, column] for row in (1 / 4, 3 / 4) for column in (1 / 6, 3 / 6, 5 / 6)]
    torch.testing.assert_close(positions, torch.tensor(expected, dtype=torch.float64))


def test_smaller_images_are_padded_to_the_largest():
    grid = attention.Grid.of([(19, 32), (25, 19)])
    assert grid.positions.shape == (2, 608, 2)
    assert grid.mask.sum(1).tolist() == [608, 475]
    assert grid.mask[1, :475].all()
    assert not grid.positions[1, 475:].any()
    alone = attention.Grid.of([(25, 19)])
    assert torch.equal(grid.positions[1, :475], alone.positions[0])


@pytest.mark.parametrize("sizes", [[], [(0, 3)], [(2.0, 3)], [(True, 3)]])
def test_sizes_that_are_not_whole_numbers_raise(sizes):
    with pytest.raises(ValueError, match="grid"):
        attention.Grid.of(sizes)


def test_a_grid_moves_to_another_device():
    grid = attention.Grid.of([(2, 3)]).to(torch.device("meta"))
    assert grid.positions.device.type == grid.mask.device.type == "meta"
