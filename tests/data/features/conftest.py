"""A small store, new for every test."""

import pytest

from tests.data.features.sample_features import write_sample


@pytest.fixture
def sample(tmp_path):
    """The path of a store with the rows that `draw_rows()` gives."""
    write_sample(tmp_path / "a.h5")
    return tmp_path / "a.h5"
