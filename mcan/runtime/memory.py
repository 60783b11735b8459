"""Running out of a device's memory: an error that says what to set."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def explain_shortage(num_questions: int, halved_by: str) -> Iterator[None]:
    """Raise a MemoryError with a remedy where so many questions at a time do not fit."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        what = f"{num_questions} questions at a time do not fit into memory: set {halved_by}"
        if num_questions == 1:
            what = "one question does not fit into memory: use a device with more of it"
        reason = ". ".join(str(error).split(". ")[:2])  # the rest is what the memory is full of
        raise MemoryError(f"{what} ({reason})") from error


def explain_batch(
    num_questions: int, is_selected_by_batch: bool = False
) -> contextlib.AbstractContextManager[None]:
    """Raise a MemoryError with a remedy where a batch of an evaluation does not fit.

    With selection=batch, K* depends on the size of the batch.
    """
    remedy = f"runtime.evaluation_batch_size={max(1, num_questions // 2)}"
    if is_selected_by_batch:
        remedy += ", in a new run: with selection=batch, K* depends on it"
    return explain_shortage(num_questions, remedy)
