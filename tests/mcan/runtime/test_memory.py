import pytest
import torch

from mcan.runtime.memory import explain_batch, explain_shortage

MESSAGE = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8 GiB."


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (explain_batch(37), "37 questions at a time do not fit into memory: set "
         "runtime.evaluation_batch_size=18"),
        (explain_batch(36, True), "36 questions at a time do not fit into memory: set "
         "runtime.evaluation_batch_size=18, in a new run: with selection=batch, K* depends on it"),
        (explain_batch(1), "one question does not fit into memory: use a device with more of it"),
        (explain_shortage(8, "x=2"), "8 questions at a time do not fit into memory: set x=2"),
    ],
)  # fmt: skip
def test_the_remedy_halves_what_does_not_fit(block, expected):
    with pytest.raises(MemoryError) as found, block:
        raise torch.OutOfMemoryError(MESSAGE)
    reason = "CUDA out of memory. Tried to allocate 2.00 GiB"
    assert str(found.value) == f"{expected} ({reason})"
