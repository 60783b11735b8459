"""The figures that a finished run leaves behind: what its model attends to."""

from pathlib import Path

from omegaconf import DictConfig

from mcan.processes import World
from scripts.choice import draw_rows
from scripts.gathering import can_draw
from scripts.trained import Trained

DPI = 110  # a quarter of the pixels that `make figures` draws, and of the time


def draw_examples(
    trained: Trained,
    root: str | Path,
    folder: Path,
    runtime: DictConfig,
    split: str = "val",
    num: int = 6,
    seed: int = 1,
) -> list[Path]:
    """Draw a model's attention to `num` questions at random into `folder`; the files written.

    A figure is a gift, not a duty: what stands in the way is said in one line, and nothing fails.
    """
    if not can_draw():
        print("no figures: matplotlib is not installed (pip install -e '.[plot]')", flush=True)
        return []
    try:
        return draw_some(trained, root, folder, runtime, split, num, seed)
    except (OSError, ValueError) as error:
        print(f"no figures: {' '.join(str(error).split())}", flush=True)
        return []


def draw_some(
    trained: Trained,
    root: str | Path,
    folder: Path,
    runtime: DictConfig,
    split: str,
    num: int,
    seed: int,
) -> list[Path]:
    """Look and draw: K = 1 … k_max side by side where the head chooses between them."""
    from scripts.album import open_album
    from scripts.looks import look_through
    from scripts.sheets import Style, compare_components, compare_heads, write_sheet

    album = open_album(root, split, [trained], runtime)
    questions = album.take(draw_rows(album.questions.image_ids, num, seed))
    world = World(0, 1, next(trained.model.parameters()).device)
    style = Style(("png",), DPI)
    written = []
    for look in look_through(trained, questions, album.stores, world, runtime):
        if len(look.candidates) > 1:
            sheet = compare_components(album, trained, look)
        else:
            sheet = compare_heads(album, [str(trained.options["name"])], [look], style)
        written += write_sheet(sheet, folder / str(look.question_id), style)
    return written
