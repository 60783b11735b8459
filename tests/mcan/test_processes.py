"""Processes that work together: their exchanges, and the same answers from any number."""

from pathlib import Path

import pytest
import torch

from mcan.processes import World, choose_device, join_world
from scripts.assembly import open_validation
from scripts.dataset import load_words
from scripts.model import build_head, build_model
from tests.mcan.together import exchange, run_together
from tests.small_runs import assert_same, compose, settings, without_times

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def validate(world, overrides):
    """Answers and metrics of an untrained model on the validation questions."""
    config = compose(overrides)
    words = load_words(config.data)
    validation = open_validation(config, words, world)
    torch.manual_seed(0)
    sizes = {
        "num_words": len(words.vocabulary),
        "num_answers": len(words.answers),
        "num_features": validation.loader.stores.num_features,
    }
    head = build_head({"name": "multimodal", "lam": 0.0}, {})
    model = build_model(config.model, head, sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)  # so that answers differ
    return {
        "predictions": vars(validation.predict(model, world, torch.float32)),
        "metrics": without_times(validation.run(model, world, torch.float32)),
    }


@pytest.fixture(scope="module")
def overrides(small_dataset, tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    small = settings(small_dataset, runs, "runtime.evaluation_batch_size=16")
    whole = [*small, "runtime.evaluation_batch_size=1000", "runtime.mixing=all"]
    return {"small": small, "whole": whole}


@pytest.fixture(scope="module")
def results(overrides, tmp_path_factory):
    """By (work, number of processes): what each process has in the end."""
    jobs = {
        ("small", 1): (1, validate, (overrides["small"],)),
        ("small", 2): (2, validate, (overrides["small"],)),
        ("small", 3): (3, validate, (overrides["small"],)),
        ("whole", 3): (3, validate, (overrides["whole"],)),
        ("exchange", 3): (3, exchange, ()),
    }
    done = run_together(list(jobs.values()), tmp_path_factory.mktemp("processes"))
    return dict(zip(jobs, done, strict=True))


@pytest.fixture(scope="module")
def alone(results):
    """One process, with as many threads as each of several: bits depend on that."""
    return results["small", 1][0]


def test_one_process_answers_every_question_once(alone):
    numbers = alone["predictions"]["question_ids"]
    assert len(numbers) == 60
    assert len(numbers.unique()) == 60
    assert torch.equal(numbers, numbers.sort().values)
    assert len(alone["predictions"]["answers"].unique()) > 1  # else the comparisons prove little


@pytest.mark.parametrize("size", [2, 3])
def test_answers_and_metrics_are_the_same_from_any_number_of_processes(results, alone, size):
    for result in results["small", size]:
        assert_same(result, alone)


def test_processes_without_any_batch_still_have_all_answers(results, alone):
    """One batch for three processes; its size may change the last bits of a probability."""
    for result in results["whole", 3]:
        for name in ("question_ids", "answers", "num_components"):
            assert torch.equal(result["predictions"][name], alone["predictions"][name])


def test_all_get_the_first_ones_value_everyones_values_and_the_sum(results):
    for result in results["exchange", 3]:
        assert result["shared"] == {"from": 0}
        assert result["gathered"] == [("rank", 0), ("rank", 1), ("rank", 2)]
        assert result["sum"] == [3.0, 3.0]


def test_a_process_alone_needs_no_group(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    world = join_world("cpu")
    assert world == World(0, 1, torch.device("cpu"))
    assert not torch.distributed.is_initialized()
    assert exchange(world) == {"shared": {"from": 0}, "gathered": [("rank", 0)], "sum": [1.0, 0.0]}


def test_cuda_without_a_number_is_each_processs_own_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [choose_device(name, 6) for name in (None, "cuda", "cuda:1", "cpu")] == [
        torch.device("cuda", 2),
        torch.device("cuda", 2),
        torch.device("cuda", 1),
        torch.device("cpu"),
    ]


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device(None, 0) == torch.device("cpu")
    with pytest.raises(ValueError, match="'cuda' was asked for, but torch finds no CUDA"):
        choose_device("cuda", 0)
    with pytest.raises(ValueError, match="there is no device 'gpu'"):
        choose_device("gpu", 0)


def test_what_the_first_process_cannot_do_is_raised():
    alone = World(0, 1, torch.device("cpu"))
    assert alone.lead(lambda: 5) == 5
    with pytest.raises(FileNotFoundError, match="no_such_file"):
        alone.lead(Path("no_such_file").read_text)
