"""make figures: what models attend to, drawn over the photos, head beside head and K beside K.

python -m scripts.figures checkpoints=[discrete,unimodal,multimodal] choose=differ
"""

from pathlib import Path

from tqdm import tqdm

from configs.schema.trained import Figures
from data.io.atomic_files import check_parents
from figures.attention_samples import AttentionSample
from figures.illustrated_split import IllustratedSplit, open_illustrated_split
from figures.question_selection import QuestionSelection, select_samples
from figures.requirements import require_matplotlib
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.distributed import World, choose_device
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import load_models
from scripts.cli.command import command
from scripts.cli.output import choose_output, place_among_runs


@command("figures")
def main(settings: Figures) -> None:
    """Load the models, select questions, draw."""
    selection = QuestionSelection(
        tuple(settings.questions), settings.choose, settings.num, settings.pool, settings.seed
    )
    selection.check(len(settings.checkpoints))
    if not settings.formats:
        raise ValueError("formats is empty, expected [png], [pdf] or [png,pdf]")
    require_matplotlib()
    set_up_torch(settings.runtime)
    world = World(0, 1, choose_device(settings.runtime.device, 0))
    models = load_models(settings, settings.checkpoints, world)
    chosen = "chosen" if settings.questions else settings.choose
    default = place_among_runs(models, settings.runs, "figures") / chosen
    output = choose_output(settings.output, default)
    check_parents(output / "a figure")
    data = models[0].open_data(settings.data.root)
    split = open_illustrated_split(data, settings.split, models, settings.runtime)
    if settings.layers:
        split.stores.require_grid("layers=true draws the cells of one")
    samples = select_samples(selection, models, split, settings.runtime)
    num_files = draw(settings, models, split, samples, output)
    print(f"{num_files} files about {len(samples[0])} questions are in {output}")


def draw(
    settings: Figures,
    models: list[TrainedModel],
    split: IllustratedSplit,
    samples: list[list[AttentionSample]],
    output: Path,
) -> int:
    """Write the figures of every question; the number of files."""
    from figures.comparison_figures import write_figure
    from figures.question_figures import compose_figures

    num_files = 0
    contents = compose_figures(
        models,
        split,
        samples,
        settings.runtime,
        components=settings.components,
        layers=settings.layers,
        smooth=settings.smooth,
    )
    bar = tqdm(
        contents,
        desc="drawing",
        total=len(samples[0]),
        unit="question",
        disable=not settings.runtime.show_progress,
    )
    for of_question in bar:
        for name, content in of_question.items():
            paths = [output / f"{name}.{kind}" for kind in settings.formats]
            write_figure(content, paths, settings.dpi)
            num_files += len(paths)
    return num_files


if __name__ == "__main__":
    main()
