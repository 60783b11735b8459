"""Matplotlib, the extra `plot`, which every figure needs and training does not."""

import importlib.util


def has_matplotlib() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """Raise when matplotlib is missing."""
    if not has_matplotlib():
        raise ValueError("drawing needs matplotlib: .venv/bin/pip install -e '.[plot]'")
