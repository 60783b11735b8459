"""make human-attention: does a model attend where people look? Divergence from VQA-HAT's maps.

python -m scripts.human_attention checkpoints=[runs/a,runs/b]
"""

from configs.schema.trained import HumanAttention
from data.human_attention.agreement import LEVEL
from data.human_attention.comparison import HumanComparison
from data.human_attention.report import check_replaceable, format_comparison, write_comparison
from mcan.evaluation.human_attention import compare
from mcan.evaluation.trained_model import label_models
from mcan.runtime.distributed import World
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import load_models, stage_and_join
from scripts.cli.command import command
from scripts.cli.output import choose_output, place_beside
from scripts.cli.processes import open_processes


@command("human_attention")
def main(settings: HumanAttention) -> None:
    """Compare, on as many processes as there are."""
    with open_processes(settings.runtime) as world:
        compare_with_people(settings, world)


def compare_with_people(settings: HumanAttention, world: World) -> HumanComparison:
    """Load the models and compare; the first process writes and prints."""
    set_up_torch(settings.runtime)
    if not settings.checkpoints:
        raise ValueError("human_attention needs checkpoints=[…]: checkpoints or folders of runs")
    if "+" in settings.split:
        raise ValueError(f"split is {settings.split}, but people's maps are of one split; name one")
    models = load_models(settings, settings.checkpoints, world)
    folder = stage_and_join(models[0], settings, world)
    output = choose_output(settings.output, place_beside(models, settings.runs, "human_attention"))
    summary = output / f"{settings.split}.json"
    check_replaceable(summary, [model.path for model in models])
    for model in models if world.is_first else []:
        if folder.layout.overlap(model.train_split, settings.split):
            print(f"WARNING: {model.path} was trained on {settings.split}, whose maps are compared")
    comparison = compare(
        models,
        folder,
        settings.split,
        world,
        settings.runtime,
        num_resamples=settings.resamples,
        seed=settings.seed,
        blur=settings.blur,
    )
    if world.is_first:
        bootstrap = {"resamples": settings.resamples, "of": "images", "level": LEVEL}
        options = [model.options for model in models]
        description = {
            "checkpoints": [str(model.path) for model in models],
            "runs": dict(zip(label_models(models), options, strict=True)),
            "data": str(folder.root),
            "split": settings.split,
            "blur_in_cells": settings.blur,
            "bootstrap": {**bootstrap, "seed": settings.seed},
        }
        write_comparison(summary, description, comparison)
        print(format_comparison(comparison))
        print(f"\nwritten to {summary} and, map by map, {summary.with_suffix('.csv')}", flush=True)
    return comparison


if __name__ == "__main__":
    main()
