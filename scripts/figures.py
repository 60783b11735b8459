"""make figures: what models attend to, drawn over the photos, head beside head and K beside K.

python -m scripts.figures checkpoints=[discrete,unimodal,multimodal] choose=differ
"""

from pathlib import Path

from tqdm import tqdm

from configs.schema.trained import Figures
from data.io.atomic_files import check_parents
from figures.attention_samples import AttentionSample, name_heads
from figures.illustrated_split import IllustratedSplit, open_illustrated_split
from figures.question_selection import QuestionSelection, select_samples
from figures.requirements import require_matplotlib
from mcan.evaluation.trained_model import TrainedModel, name_models
from mcan.runtime.distributed import World, choose_device
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import load_models
from scripts.cli.command import command
from scripts.cli.output import choose_output


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
    folder = "chosen" if settings.questions else settings.choose
    output = choose_output(settings.output, Path(settings.runs) / "figures" / folder)
    check_parents(output / "a figure")
    set_up_torch(settings.runtime)
    world = World(0, 1, choose_device(settings.runtime.device, 0))
    models = load_models(settings, settings.checkpoints, world)
    data = models[0].open_data(settings.data.root)
    split = open_illustrated_split(data, settings.split, models, settings.runtime)
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
    from figures.comparison_figures import compare_components, compare_heads, write_figure

    runs, heads = name_models(models), name_heads(models)
    several = sum(bool(each[0].candidates) for each in samples) > 1
    num_files = 0
    questions = list(zip(*samples, strict=True))
    bar = tqdm(
        questions, desc="drawing", unit="question", disable=not settings.runtime.show_progress
    )
    for of_question in bar:
        contents = {"heads": compare_heads(split, heads, of_question, settings.smooth)}
        for model, run, sample in zip(models, runs, of_question, strict=True):
            if settings.components and len(sample.candidates) > 1:
                name = f"components-{run.replace('/', '-')}" if several else "components"
                contents[name] = compare_components(split, model, sample)
        for name, content in contents.items():
            stem = f"{of_question[0].question_id}-{name}"
            paths = [output / f"{stem}.{kind}" for kind in settings.formats]
            write_figure(content, paths, settings.dpi)
            num_files += len(paths)
    return num_files


if __name__ == "__main__":
    main()
