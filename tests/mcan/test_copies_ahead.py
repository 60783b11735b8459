"""Training, evaluation and measured steps draw their batches through `copy_ahead`."""

import pytest
import torch

from benchmarks.parts import estimates
from data.batching.loader import Loader
from data.batching.sampler import TrainingSampler
from data.features.store_set import open_stores
from mcan.evaluation import evaluation_split
from mcan.runtime.settings import Runtime
from mcan.training import training_data
from scripts.bench import TOY_STEPS
from tests.data.features.sample_features import ask, write_sample
from tests.small_runs import ALONE

IMAGES = [3, 7, 12, 20, 21, 30]


@pytest.fixture
def make_loader(tmp_path):
    write_sample(tmp_path / "a.h5")
    return lambda **options: Loader(open_stores([tmp_path / "a.h5"]), ask(IMAGES), 4, **options)


@pytest.fixture
def follow(monkeypatch):
    """Count what a module draws, and keep what it was asked to keep valid."""

    def replace_in(module):
        drawn, kept = [], []

        def copy_ahead(batches, device: torch.device, keep: int = 1):
            assert device == ALONE.device
            kept.append(keep)
            for batch in batches:
                drawn.append(batch)
                yield batch

        monkeypatch.setattr(module, "copy_ahead", copy_ahead)
        return drawn, kept

    return replace_in


def test_training_keeps_a_step_of_micro_batches(make_loader, follow):
    drawn, kept = follow(training_data)
    loader = make_loader(keep=3)
    sampler = TrainingSampler(loader.shapes, 2, seed=0, mixing="all")
    steps = list(training_data.TrainingData(loader, sampler, ALONE, 2).batches(1, 0))
    assert [len(step) for step in steps] == [2, 2, 2]
    trained = [batch for step in steps for batch in step]
    assert all(one is other for one, other in zip(trained, drawn, strict=True))
    assert kept == [2]


def test_evaluation_keeps_one_batch(make_loader, follow):
    drawn, kept = follow(evaluation_split)
    runtime = Runtime(show_progress=False)
    batches = list(
        evaluation_split.iterate_split(make_loader(share_images=True), 4, runtime, ALONE)
    )
    assert sum(len(batch.question_ids) for batch in batches) == len(IMAGES)
    assert all(one is other for one, other in zip(batches, drawn, strict=True))
    assert kept == [1]


@pytest.mark.filterwarnings("ignore:a constant image")
def test_measured_steps_keep_one_batch(follow):
    drawn, kept = follow(estimates)
    estimates.measure_steps(ALONE.device, torch.float32, TOY_STEPS)
    num_turns = TOY_STEPS.rounds + 1  # one warms up
    assert len(drawn) == num_turns * TOY_STEPS.num_steps
    assert kept == [1] * num_turns
