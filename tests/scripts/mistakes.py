"""What every mistake of a user leads to."""

from collections.abc import Callable

from tests.small_models import run_here


def assert_one_sentence(main: Callable[[], None], words: list[str], sentence: str) -> None:
    """The command ends with exit code 2 and one sentence, and prints nothing else."""
    code, printed, error = run_here(main, *words, quiet=[])
    assert (code, printed) == (2, "")
    assert sentence in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
