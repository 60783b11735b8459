"""make human-attention: do models look where people look? Divergence from VQA-HAT's maps.

python -m scripts.human_attention checkpoints=[runs/a,runs/b]
"""

import csv
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from data.bootstrap import LEVEL
from data.files import read_json, refuse_file_on_the_way, refuse_folder, replacing, write_json
from data.human_comparison import COLUMNS, HumanComparison
from data.splits import Folder, overlap
from mcan.processes import World, joined_world
from scripts.entry import command
from scripts.evaluation import begin, data_root, load_together
from scripts.human_comparison import compare, name_models
from scripts.human_table import format_comparison
from scripts.settings import require_text
from scripts.trained import Trained

KIND = "comparison with human attention"
LONGEST = 120  # letters of a folder's name


@command("human_attention")
def main(config: DictConfig) -> None:
    """Compare, on as many processes as there are."""
    with joined_world(config.runtime.device, config.runtime.timeout_minutes) as world:
        compare_with_people(config, world)


def compare_with_people(config: DictConfig, world: World) -> HumanComparison:
    """Load, look, compare; the first process writes and prints."""
    begin(config)
    if not config.checkpoints:
        raise ValueError("human_attention needs checkpoints=[…]: checkpoints or folders of runs")
    models = load_together(config, config.checkpoints, world)
    folder = Folder(data_root(config, models[0]))
    output = choose_output(config, models) / f"{config.split}.json"
    refuse_foreign(output, models)
    if world.is_first:
        warn_of_training(models, config.split)
    comparison = compare(
        models,
        folder,
        config.split,
        world,
        config.runtime,
        num_resamples=config.resamples,
        seed=config.seed,
        blur=config.blur,
    )
    if world.is_first:
        write(output, describe(config, folder, models), comparison)
        print(format_comparison(comparison))
        print(f"\nwritten to {output} and, map by map, {output.with_suffix('.csv')}", flush=True)
    return comparison


def warn_of_training(models: list[Trained], split: str) -> None:
    """Say so when a model has learnt to answer the very questions that people looked at."""
    for model in models:
        if overlap(model.train_split, split):
            print(f"WARNING: {model.path} was trained on {split}, whose maps it is held against")


def choose_output(config: DictConfig, models: list[Trained]) -> Path:
    """The folder that is named, one beside a single checkpoint, or one of the models' names."""
    if config.output:
        return Path(require_text("output", config.output))
    if len(models) == 1:
        return models[0].path.parent / "human_attention"
    name = "+".join(name_models(models)).replace("/", "-")
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]}+{len(models)}"
    return Path(config.runs) / "human_attention" / name


def refuse_foreign(output: Path, models: list[Trained]) -> None:
    """Raise before any work when something other than these models' comparison would be lost."""
    for path in (output, output.with_suffix(".csv")):
        refuse_file_on_the_way(path)
        refuse_folder(path)
    if output.exists():
        found = read_json(output)
        known = found.get("checkpoints", []) if isinstance(found, dict) else []
        ours = isinstance(found, dict) and found.get("kind") == KIND
        if not ours or {Path(p).resolve() for p in known} != {m.path.resolve() for m in models}:
            what = "the comparison of other checkpoints" if ours else "something else"
            raise ValueError(f"{output} holds {what}; name another folder with output=…")
    elif output.with_suffix(".csv").exists():
        raise ValueError(
            f"{output.with_suffix('.csv')} is there without {output.name}, so it is something "
            f"else; name another folder with output=…"
        )


def describe(config: DictConfig, folder: Folder, models: list[Trained]) -> dict[str, Any]:
    """What was compared, and how."""
    return {
        "kind": KIND,
        "checkpoints": [str(model.path) for model in models],
        "runs": dict(zip(name_models(models), (model.options for model in models), strict=True)),
        "data": str(folder.root),
        "split": config.split,
        "blur_in_cells": config.blur,
        "bootstrap": {
            "resamples": config.resamples,
            "of": "images",
            "level": LEVEL,
            "seed": config.seed,
        },
    }


def write(output: Path, description: dict[str, Any], comparison: HumanComparison) -> None:
    """The summary as JSON, then every map's figures as CSV."""
    write_json(output, {**description, **comparison.to_json()}, indent=1)
    with (
        replacing(output.with_suffix(".csv")) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        table = csv.writer(file)
        table.writerow(COLUMNS)
        table.writerows(comparison.rows())


if __name__ == "__main__":
    main()
