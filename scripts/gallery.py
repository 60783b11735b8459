"""make gallery: a few hundred questions on one page, to filter, sort and leaf through.

python -m scripts.gallery checkpoints=[discrete,unimodal,multimodal]
"""

from pathlib import Path

from omegaconf import DictConfig

from data.files import replacing
from mcan.processes import World, choose_device
from scripts.album import open_album
from scripts.choice import check_choice, choose_looks
from scripts.entry import command
from scripts.evaluation import begin, data_root
from scripts.gathering import load_models, require_drawing
from scripts.human_comparison import name_models
from scripts.looks import name_heads
from scripts.settings import require_text
from scripts.trained import Trained

LEAST_SIDE = 32
LONGEST = 120  # letters of a file name


@command("gallery")
def main(config: DictConfig) -> None:
    """Load, choose, look, write one file."""
    check_choice(config)
    if config.photo_side < LEAST_SIDE:
        raise ValueError(f"photo_side is {config.photo_side}, expected at least {LEAST_SIDE}")
    require_drawing()
    from figures.page import write_page
    from scripts.cards import make_page

    begin(config)
    world = World(0, 1, choose_device(config.runtime.device, 0))
    models = load_models(config, world)
    output = choose_output(config, models)
    refuse_foreign(output)
    album = open_album(data_root(config, models[0]), config.split, models, config.runtime)
    looks = choose_looks(config, models, album, world)
    names = name_heads(models, name_models(models))
    page = write_page(make_page(album, names, looks, config.photo_side))
    with replacing(output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    print(
        f"{len(looks[0])} questions, {len(page.encode()) / 1e6:.1f} MB: open {output} in a browser"
    )


def choose_output(config: DictConfig, models: list[Trained]) -> Path:
    """The file that is named, gallery.html beside a single checkpoint, or one among the runs."""
    if config.output:
        return Path(require_text("output", config.output))
    if len(models) == 1:
        return models[0].path.parent / "gallery.html"
    name = "+".join(name_models(models)).replace("/", "-")
    return Path(config.runs) / "gallery" / f"{name[:LONGEST]}.html"


def refuse_foreign(output: Path) -> None:
    """Raise when something other than an earlier gallery would be lost."""
    from figures.page import MARK

    if output.is_file():
        with open(output, encoding="utf-8", errors="replace") as file:
            if MARK not in file.read(2000):
                raise ValueError(f"{output} is no gallery; name another file with output=…")


if __name__ == "__main__":
    main()
