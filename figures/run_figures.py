"""The figures that a finished run leaves behind: what its model attends to."""

from pathlib import Path

from data.vqa.data_folder import DataFolder
from figures.illustrated_split import open_illustrated_split
from figures.question_selection import QuestionSelection, select_samples
from figures.requirements import require_matplotlib
from mcan.evaluation.trained_model import TrainedModel
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
    """A figure per question of `num` random ones: K = 1 … k_max where the head selects K.

    A run does not fail for want of figures: what prevents them is said in one line.
    """
    try:
        require_matplotlib()
        from figures.comparison_figures import compare_components, compare_heads, write_figure

        illustrated = open_illustrated_split(folder, split, [trained], runtime)
        selection = QuestionSelection((), "random", num, pool=0, seed=seed)
        (samples,) = select_samples(selection, [trained], illustrated, runtime)
        paths = [output / f"{sample.question_id}.png" for sample in samples]
        for sample, path in zip(samples, paths, strict=True):
            if len(sample.candidates) > 1:
                content = compare_components(illustrated, trained, sample)
            else:
                content = compare_heads(illustrated, [trained.head_name], [sample])
            write_figure(content, [path], DPI)
        return paths
    except (OSError, ValueError) as error:
        print(f"no figures: {' '.join(str(error).split())}", flush=True)
        return []
