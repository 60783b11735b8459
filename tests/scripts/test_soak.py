"""The verdict on a long training: what grows is told, what goes up and down is not."""

import subprocess
import sys

import pytest

from scripts.soak import Sample, judge
from tests.small_runs import ROOT


def samples(megabytes, num_files=lambda n: 10, num_threads=lambda n: 4, count=100):
    return [Sample(n, megabytes(n), num_files(n), num_threads(n)) for n in range(count)]


def test_memory_that_goes_up_and_down_is_flat():
    assert judge(samples(lambda n: 400 + 20 * (n % 5)), warm_up=0.2, tolerance=2) == []


def test_memory_that_fills_during_the_warm_up_is_flat():
    assert judge(samples(lambda n: min(400, 200 + 15 * n)), warm_up=0.2, tolerance=2) == []


def test_memory_that_grows_by_more_than_the_tolerance_is_told():
    (problem,) = judge(samples(lambda n: 400 + n / 4), warm_up=0.2, tolerance=2)
    assert problem == "memory from 407.4 to 422.4 MB, by 3.7 %"
    assert judge(samples(lambda n: 400 + n / 4), warm_up=0.2, tolerance=4) == []


def test_files_and_threads_may_not_be_one_more_than_before():
    grown = samples(lambda n: 400, lambda n: 10 + n // 90, lambda n: 4 + n // 95)
    assert judge(grown, 0.2, 2) == ["files from 10 to 11", "threads from 4 to 5"]
    assert judge(samples(lambda n: 400, lambda n: 10 + n % 3), 0.2, 2) == []


def test_too_few_samples_are_not_judged():
    with pytest.raises(ValueError, match="7 samples are too few to judge; give it more minutes"):
        judge(samples(lambda n: 400, count=9), warm_up=0.2, tolerance=2)


def test_settings_that_make_no_sense_are_refused():
    words = [sys.executable, "-m", "scripts.soak", "minutes=0"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "error: soak needs minutes > 0, samples_per_minute ≥ 1 and warm_up in [0, 1)\n"
    )


def test_some_seconds_of_training_are_sampled_and_the_training_is_stopped_on_request():
    words = ["minutes=0.3", "samples_per_minute=60", "warm_up=0", "tolerance=1000"]
    done = subprocess.run(
        [sys.executable, "-m", "scripts.soak", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert "stopped on request" in done.stdout, done.stderr
    assert "samples, " in done.stdout
