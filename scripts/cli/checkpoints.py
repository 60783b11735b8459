"""Trained models, found by the names that a user gives them, and the split that they answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from configs.schema.trained import SplitSettings, TrainedSettings
from data.features.staging import stage_stores
from data.vqa.data_folder import DataFolder
from mcan.evaluation.evaluation_split import EvaluationSplit, open_evaluation_split
from mcan.evaluation.trained_model import TrainedModel, load_several, load_trained
from mcan.runtime.distributed import World
from mcan.runtime.torch_settings import use_threads


def load_models(
    settings: TrainedSettings, names: Sequence[str], world: World
) -> list[TrainedModel]:
    """The models of checkpoints or runs, each with the changed options that its head has.

    An option that no head has is an error. Torch takes as many threads as the widest model needs.
    """
    paths = [find_run(name, Path(settings.runs)) for name in names]
    changed = changed_options(settings)
    if len(paths) == 1:
        models = [load_trained(paths[0], world.device, changed)]
    else:
        models = load_several(paths, world.device, changed)
    widest = max(trained.model.sizes.hidden for trained in models)
    use_threads(settings.runtime, widest, world.device)
    return models


def open_split(
    models: Sequence[TrainedModel], settings: SplitSettings, world: World, **options: bool
) -> EvaluationSplit:
    """The split that the models are to answer; `options` are those of `open_evaluation_split`."""
    folder = stage_and_join(models[0], settings, world)
    return open_evaluation_split(
        folder,
        settings.split,
        models[0].words,
        settings.runtime,
        world.device,
        models=models,
        **options,
    )


def stage_and_join(trained: TrainedModel, settings: SplitSettings, world: World) -> DataFolder:
    """The data of a model; processes join when the stores of the split are on their machines."""
    folder = trained.open_data(settings.data.root)
    world.join(stage_stores(folder.stores(settings.split), settings.runtime.stage_to))
    return folder


def changed_options(settings: TrainedSettings) -> dict[str, Any]:
    """The options of attention heads that a command line sets."""
    return {name: value for name, value in settings.attention.items() if value is not None}


def find_run(name: str, runs: Path) -> Path:
    """A path as it is; the run of that name; or the only run whose name holds it as a part.

    `make train` names runs <data>-<head>-seed<n>-…, so that "discrete" is enough for the only one.
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
