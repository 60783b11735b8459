"""make figures: what models attend to, drawn over the photos, head beside head and K beside K.

python -m scripts.figures checkpoints=[discrete,unimodal,multimodal] choose=differ
"""

from pathlib import Path

from omegaconf import DictConfig
from tqdm import tqdm

from mcan.processes import World, choose_device
from scripts.album import Album, open_album
from scripts.choice import check_choice, choose_looks
from scripts.entry import command
from scripts.evaluation import begin, data_root
from scripts.gathering import load_models, require_drawing
from scripts.human_comparison import name_models
from scripts.looks import Look, name_heads
from scripts.settings import require_text
from scripts.trained import Trained

KINDS = ("png", "pdf")
LEAST_DPI = 20


@command("figures")
def main(config: DictConfig) -> None:
    """Load, choose, look, draw."""
    check(config)
    require_drawing()
    begin(config)
    world = World(0, 1, choose_device(config.runtime.device, 0))
    models = load_models(config, world)
    album = open_album(data_root(config, models[0]), config.split, models, config.runtime)
    looks = choose_looks(config, models, album, world)
    folder = choose_output(config)
    num_files = draw(config, models, album, looks, folder)
    print(f"{num_files} files about {len(looks[0])} questions are in {folder}")


def check(config: DictConfig) -> None:
    """Raise, before any work, when a setting makes no sense."""
    check_choice(config)
    unknown = [kind for kind in config.formats if kind not in KINDS]
    if unknown or not config.formats:
        raise ValueError(f"formats must be [png], [pdf] or [png,pdf], not {list(config.formats)}")
    if config.dpi < LEAST_DPI:
        raise ValueError(f"dpi is {config.dpi}, expected at least {LEAST_DPI}")


def choose_output(config: DictConfig) -> Path:
    """The folder that is named, or one of the choice's name among the runs."""
    if config.output:
        return Path(require_text("output", config.output))
    return Path(config.runs) / "figures" / ("chosen" if config.questions else config.choose)


def draw(
    config: DictConfig, models: list[Trained], album: Album, looks: list[list[Look]], folder: Path
) -> int:
    """Write the figures of every question; the number of files."""
    from scripts.sheets import Style, compare_components, compare_heads, write_sheet

    style = Style(tuple(config.formats), config.dpi, config.smooth)
    runs = name_models(models)
    heads = name_heads(models, runs)
    several = sum(bool(each[0].candidates) for each in looks) > 1
    num_files = 0
    bar = tqdm(looks[0], desc="drawing", unit="question", disable=not config.runtime.show_progress)
    for place, first in enumerate(bar):
        stem = folder / f"{first.question_id}"
        of_question = [each[place] for each in looks]
        sheets = {"heads": compare_heads(album, heads, of_question, style)}
        for model, run, look in zip(models, runs, of_question, strict=True):
            if config.components and len(look.candidates) > 1:
                name = f"components-{run.replace('/', '-')}" if several else "components"
                sheets[name] = compare_components(album, model, look)
        for name, sheet in sheets.items():
            num_files += len(write_sheet(sheet, stem.with_name(f"{stem.name}-{name}"), style))
    return num_files


if __name__ == "__main__":
    main()
