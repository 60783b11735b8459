"""make soak: what grows is named, what goes up and down is not; tests/faults runs it."""

import pytest

from scripts.cluster.process_samples import Sample, find_growth


def samples(megabytes, num_files=lambda n: 10, num_threads=lambda n: 4, count=100):
    return [Sample(n, megabytes(n), num_files(n), num_threads(n)) for n in range(count)]


@pytest.mark.parametrize(
    "megabytes", [lambda n: 400 + 20 * (n % 5), lambda n: min(400, 200 + 15 * n)]
)
def test_memory_that_goes_up_and_down_or_fills_during_the_warm_up_does_not_grow(megabytes):
    assert find_growth(samples(megabytes), warm_up=0.2, tolerance=2) == []


def test_memory_that_grows_by_more_than_the_tolerance_is_named():
    (problem,) = find_growth(samples(lambda n: 400 + n / 4), warm_up=0.2, tolerance=2)
    assert problem == "memory from 407.4 to 422.4 MB, by 3.7 %"
    assert find_growth(samples(lambda n: 400 + n / 4), warm_up=0.2, tolerance=4) == []


def test_files_and_threads_may_not_be_one_more_than_before():
    grown = samples(lambda n: 400, lambda n: 10 + n // 90, lambda n: 4 + n // 95)
    assert find_growth(grown, 0.2, 2) == ["files from 10 to 11", "threads from 4 to 5"]
    assert find_growth(samples(lambda n: 400, lambda n: 10 + n % 3), 0.2, 2) == []


def test_too_few_samples_are_not_compared():
    with pytest.raises(ValueError, match="7 samples are too few to compare; give it more minutes"):
        find_growth(samples(lambda n: 400, count=9), warm_up=0.2, tolerance=2)
