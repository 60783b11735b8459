"""Every question with another one, of another image where possible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.vqa.derangement import derange


@given(st.lists(st.integers(0, 6), min_size=2, max_size=30), st.integers(0, 5))
def test_every_question_gets_another_one_of_another_image_where_that_can_be(
    image_ids: list[int], seed: int
) -> None:
    images = np.array(image_ids)
    partners = derange(images, seed)
    assert sorted(partners) == list(range(len(images)))
    assert (partners != np.arange(len(images))).all()
    if np.unique(images, return_counts=True)[1].max() <= len(images) / 2:
        assert (images[partners] != images).all()
    np.testing.assert_array_equal(partners, derange(images, seed))


def test_the_seed_decides_which_question() -> None:
    images = np.arange(50)
    assert (derange(images, 0) != derange(images, 1)).any()


def test_a_single_question_has_no_other() -> None:
    with pytest.raises(ValueError, match="at least two, found 1"):
        derange(np.array([7]))
