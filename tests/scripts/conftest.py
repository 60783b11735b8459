"""Small trained models that the tests of several commands share."""

import pytest

from tests.small_models import sharpen, train_small


@pytest.fixture(scope="session")
def trained_runs(small_dataset, tmp_path_factory):
    """The folder of the runs below; tests write elsewhere."""
    return tmp_path_factory.mktemp("trained_runs")


@pytest.fixture(scope="session")
def multimodal_run(small_dataset, trained_runs):
    return train_small(small_dataset, trained_runs, "mm", "attention=multimodal")


@pytest.fixture(scope="session")
def discrete_run(small_dataset, trained_runs):
    return train_small(small_dataset, trained_runs, "discrete", "attention=discrete", "seed=2")


@pytest.fixture(scope="session")
def peaky_run(multimodal_run):
    """A model whose attention has every number of components, and to whose answers it matters."""
    return sharpen(multimodal_run, "peaky")
