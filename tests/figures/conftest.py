"""Models with every head, and their attention to all questions of the small dataset."""

import pytest

from data.vqa.data_folder import DataFolder
from figures.attention_samples import collect_samples
from figures.illustrated_split import open_illustrated_split
from mcan.evaluation.trained_model import load_trained
from mcan.runtime.settings import Runtime


@pytest.fixture(scope="session")
def runtime():
    return Runtime(show_progress=False, loader_threads=0)


@pytest.fixture(scope="session")
def models(runs_of_every_head):
    """Discrete, unimodal, multimodal."""
    plain = [load_trained(runs_of_every_head / head) for head in ("discrete", "unimodal")]
    return [*plain, load_trained(runs_of_every_head / "multimodal", changed={"lam": 0.05})]


@pytest.fixture(scope="session")
def split(small_dataset, models, runtime):
    return open_illustrated_split(DataFolder(small_dataset), "val", models, runtime)


@pytest.fixture(scope="session")
def samples(models, split, runtime):
    """Every model's attention to all questions."""
    return [collect_samples(model, split.questions, split.stores, runtime) for model in models]
