import pytest

from data.registry import Registry


def test_an_unknown_name_lists_what_there_is_and_how_to_add_to_it():
    metrics = Registry("metric")
    metrics.register("accuracy", len)
    with pytest.raises(
        ValueError, match=r"no metric 'mine'; there are accuracy, and modules=\[…\]"
    ):
        metrics["mine"]
