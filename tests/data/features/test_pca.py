"""Principal components of a store's features."""

import numpy as np
import pytest

from data.features import pca
from data.features.pca import fit_pca
from data.features.store_set import open_stores
from tests.data.features.sample_features import write_sample


def test_components_are_those_of_a_singular_value_decomposition(tmp_path):
    sizes = {number: (2, 3 + number % 2) for number in range(50)}
    rows = write_sample(tmp_path / "a.h5", sizes)
    stores = open_stores([tmp_path / "a.h5"])
    fitted = fit_pca(stores, np.array([*rows, *rows]), 3)
    cells = np.concatenate([rows[number] for number in sorted(rows)]).astype(np.float64)
    u, s, _ = np.linalg.svd(cells - cells.mean(0), full_matrices=False)
    expected = u[:, :3] * s[:3] / s[0] * len(cells) ** 0.5
    found = (cells - fitted.mean.numpy()) @ fitted.directions.numpy().T
    np.testing.assert_allclose(abs(found), abs(expected), atol=1e-4)
    assert found.std(0)[0] == pytest.approx(1, abs=1e-4)
    assert fitted.explained == pytest.approx((s[:3] ** 2).sum() / (s**2).sum(), abs=1e-4)


def test_images_are_chosen_evenly_and_no_more_than_are_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(pca, "NUM_IMAGES", 3)
    rows = write_sample(tmp_path / "a.h5", dict.fromkeys(range(11), (1, 2)))
    stores = open_stores([tmp_path / "a.h5"])
    fitted = fit_pca(stores, np.array(list(rows)), 2)
    expected = np.concatenate([rows[0], rows[5], rows[10]]).mean(0)
    np.testing.assert_allclose(fitted.mean.numpy(), expected, atol=1e-3)


def test_one_image_and_features_that_never_change_have_components_too(tmp_path):
    write_sample(tmp_path / "a.h5", {1: (1, 1)})
    fitted = fit_pca(open_stores([tmp_path / "a.h5"]), np.array([1]), 2)
    assert fitted.directions.isfinite().all()
