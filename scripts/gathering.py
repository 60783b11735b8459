"""Several trained models, found by the names that a user gives them."""

import importlib.util
from pathlib import Path

from omegaconf import DictConfig

from mcan.processes import World
from scripts.evaluation import load_together
from scripts.settings import require_text
from scripts.trained import Trained


def load_models(config: DictConfig, world: World) -> list[Trained]:
    """Every checkpoint, with the changed options that its head has."""
    runs = Path(config.runs)
    paths = [find_run(require_text("checkpoints", name), runs) for name in config.checkpoints]
    return load_together(config, [str(path) for path in paths], world)


def find_run(name: str, runs: Path) -> Path:
    """A path as it is; the run of that name; or the only run whose name holds it as a part.

    `make train` names runs <data>-<head>-seed<n>, so that "discrete" is enough where there is one.
    """
    for path in (Path(name), runs / name):
        if path.is_file() or (path / "best.pt").is_file():
            return path
    folders = sorted(path.parent for path in runs.glob("*/best.pt"))
    found = [folder for folder in folders if name in folder.name.split("-")]
    if len(found) == 1:
        return found[0]
    if found:
        named = ", ".join(folder.name for folder in found)
        raise ValueError(f"'{name}' may be any of {named} in {runs}; name one of them")
    if Path(name).is_dir():
        return Path(name)  # without a checkpoint: whoever opens it says so
    there = ", ".join(folder.name for folder in folders) or "none"
    raise FileNotFoundError(f"there is no checkpoint or run '{name}'; runs in {runs}: {there}")


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def require_drawing() -> None:
    """Raise when matplotlib is missing."""
    if not can_draw():
        raise ValueError("drawing needs matplotlib: pip install -e '.[plot]'")
