"""Where a command writes, checked before its work begins."""

from collections.abc import Sequence
from pathlib import Path

from data.io.atomic_files import check_output_file, check_parents
from mcan.evaluation.trained_model import TrainedModel, join_names, name_models


def choose_output(output: str | None, default: Path) -> Path:
    """The file or folder that is named, else the default one; nothing on its way may be a file."""
    path = Path(output) if output else default
    check_parents(path)
    return path


def place_beside(models: Sequence[TrainedModel], runs: str, kind: str, suffix: str = "") -> Path:
    """Where output about models goes: beside a single checkpoint, or <runs>/<kind>/<names>."""
    if len(models) == 1:
        return models[0].path.parent / f"{kind}{suffix}"
    return place_among_runs(models, runs, kind, suffix)


def place_among_runs(
    models: Sequence[TrainedModel], runs: str, kind: str, suffix: str = ""
) -> Path:
    """<runs>/<kind>/<names>, for one model or several."""
    name = join_names(name_models(models)).replace("/", "-")
    return Path(runs) / kind / f"{name}{suffix}"


def choose_files(output: str | None, default: Path, names: Sequence[str]) -> list[Path]:
    """The files of these names in the folder that is named, else in the default one."""
    folder = Path(output) if output else default
    files = [folder / name for name in names]
    for path in files:
        check_output_file(path)
    return files
