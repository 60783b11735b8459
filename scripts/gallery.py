"""make gallery: a few hundred questions on one page, to filter, sort and page through.

python -m scripts.gallery checkpoints=[discrete,unimodal,multimodal]
"""

from pathlib import Path

from configs.schema.trained import Gallery
from data.io.atomic_files import atomic_write, check_output_file
from figures.attention_samples import name_heads
from figures.illustrated_split import open_illustrated_split
from figures.question_selection import QuestionSelection, select_samples
from figures.requirements import require_matplotlib
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.distributed import World, choose_device
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import load_models
from scripts.cli.command import command
from scripts.cli.output import place_beside


@command("gallery")
def main(settings: Gallery) -> None:
    """Load the models, select questions, write one file."""
    selection = QuestionSelection(
        tuple(settings.questions), settings.choose, settings.num, settings.pool, settings.seed
    )
    selection.check(len(settings.checkpoints))
    require_matplotlib()
    from figures.gallery.items import make_page
    from figures.gallery.page import write_page

    set_up_torch(settings.runtime)
    world = World(0, 1, choose_device(settings.runtime.device, 0))
    models = load_models(settings, settings.checkpoints, world)
    output = choose_page(settings, models)
    folder = models[0].open_data(settings.data.root)
    split = open_illustrated_split(folder, settings.split, models, settings.runtime)
    samples = select_samples(selection, models, split, settings.runtime)
    page = write_page(make_page(split, name_heads(models), samples, settings.photo_side))
    with atomic_write(output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    size = len(page.encode()) / 1e6
    print(f"{len(samples[0])} questions, {size:.1f} MB: open {output} in a browser")


def choose_page(settings: Gallery, models: list[TrainedModel]) -> Path:
    """The file that is named, gallery.html beside a single checkpoint, or one among the runs.

    Only an earlier gallery is replaced.
    """
    from figures.gallery.page import GENERATOR

    default = place_beside(models, settings.runs, "gallery", ".html")
    output = Path(settings.output) if settings.output else default
    check_output_file(output)
    if output.is_file():
        with open(output, encoding="utf-8", errors="replace") as file:
            if GENERATOR not in file.read(2000):
                raise ValueError(f"{output} is not a gallery; name another file with output=…")
    return output


if __name__ == "__main__":
    main()
