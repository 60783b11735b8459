"""The figures that a finished run leaves behind: what its model attends to."""

from pathlib import Path

from data.vqa.data_folder import DataFolder
from figures.question_selection import QuestionSelection, select_samples
from figures.requirements import has_matplotlib
from mcan.evaluation.trained_model import TrainedModel
from mcan.runtime.distributed import World
from mcan.runtime.settings import Runtime

DPI = 110  # a quarter of the pixels that `make figures` draws, and of the time


def draw_run_figures(
    trained: TrainedModel,
    folder: DataFolder,
    output: Path,
    runtime: Runtime,
    *,
    split: str = "val",
    num: int = 6,
    seed: int = 1,
) -> list[Path]:
    """Draw a model's attention to `num` random questions of a split; the files in `output`.

    A run does not fail for want of figures: what prevents them is said in one line.
    """
    if not has_matplotlib():
        print("no figures: matplotlib is not installed (pip install -e '.[plot]')", flush=True)
        return []
    selection = QuestionSelection((), "random", num, pool=0, seed=seed)
    try:
        return draw_selection(trained, folder, split, selection, output, runtime)
    except (OSError, ValueError) as error:
        print(f"no figures: {' '.join(str(error).split())}", flush=True)
        return []


def draw_selection(
    trained: TrainedModel,
    folder: DataFolder,
    split: str,
    selection: QuestionSelection,
    output: Path,
    runtime: Runtime,
) -> list[Path]:
    """A figure per question: K = 1 … k_max side by side where the head selects K."""
    from figures.comparison_figures import compare_components, compare_heads, write_figure
    from figures.illustrated_split import open_illustrated_split

    illustrated = open_illustrated_split(folder, split, [trained], runtime)
    world = World(0, 1, next(trained.model.parameters()).device)
    (samples,) = select_samples(selection, [trained], illustrated, world, runtime)
    paths = [output / f"{sample.question_id}.png" for sample in samples]
    for sample, path in zip(samples, paths, strict=True):
        if len(sample.candidates) > 1:
            content = compare_components(illustrated, trained, sample)
        else:
            content = compare_heads(illustrated, [str(trained.options["name"])], [sample])
        write_figure(content, [path], DPI)
    return paths
