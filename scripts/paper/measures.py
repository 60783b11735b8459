"""What is measured of the finished runs, each measure by its own command and kept in its files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.io.atomic_files import read_json
from mcan.evaluation.metric_names import rename_old_metrics
from scripts.paper.runs import FINE_TUNED, Run, call

FLOORS = {"cell": "lambda", "1e-6": "lambda-paper-floor"}  # and where each one's table lies


@dataclass(frozen=True)
class Measures:
    """The commands of a report; `words` are settings that all of them share."""

    folder: Path
    data_root: str
    words: tuple[str, ...]

    def evaluate(self, run: Run, other_images: bool = False) -> dict[str, Any]:
        """Accuracy and K* of a run, or what it gets right when it is shown other images."""
        path = run.folder / "evaluate" / f"val{'-other-images' if other_images else ''}.json"
        words = [f"checkpoint={run.folder}", f"other_images={str(other_images).lower()}"]
        return self._measure(path, run, "evaluate", *words)

    def select_lambda(self, run: Run, floor: str) -> dict[str, Any]:
        """The table of λ of a multimodal run under one floor of its variances."""
        path = run.folder / FLOORS[floor] / "table.json"
        words = [f"checkpoint={run.folder}", f"attention.floor={floor}", f"output={path.parent}"]
        return self._measure(path, run, "select_lambda", *words)

    def compare_with_people(
        self, runs: Sequence[Run], lam: float | None = None
    ) -> dict[str, Any] | None:
        """Divergence from human maps, with another λ than the models' own; None without maps."""
        if not (Path(self.data_root) / "human_attention").is_dir():
            return None
        name = f"seed{runs[0].seed}{'' if lam is None else '-picked'}"
        path = self.folder / "human_attention" / name / "val.json"
        named = ",".join(str(run.checkpoint) for run in runs)
        words = [f"checkpoints=[{named}]", f"output={path.parent}"]
        words += [f"attention.lam={lam}"] if lam is not None else []
        return self._measure(path, runs[-1], "human_attention", *words)

    def draw_figures(self, runs: Sequence[Run], num: int) -> list[Path]:
        """Heads side by side over the same questions, as PNG files."""
        folder = self.folder / "figures"
        if num and not any(folder.glob("**/*.png")):
            named = ",".join(str(run.checkpoint) for run in runs)
            words = [f"checkpoints=[{named}]", f"output={folder}", f"num={num}", "choose=differ"]
            self._call("figures", "figures", *words, "formats=[png]")
        return sorted(folder.glob("**/*.png"))

    def _measure(self, path: Path, run: Run, command: str, *words: str) -> dict[str, Any]:
        """What a command writes, which runs unless that is there and younger than the run."""
        if not (path.is_file() and path.stat().st_mtime >= run.checkpoint.stat().st_mtime):
            what = f"{command} of {run.folder.name}"
            print(what, flush=True)
            self._call(what, command, *words)
        return read(path)

    def _call(self, what: str, command: str, *words: str) -> None:
        call(["-m", f"scripts.{command}", *words, f"data.root={self.data_root}", *self.words], what)


def read(path: Path) -> dict[str, Any]:
    """The JSON that a command has written."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no report; delete it, and it is made again")
    if "rows" in content:  # of lambda
        content["rows"] = [rename_old_metrics(row) for row in content["rows"]]
    return rename_old_metrics(content)


def is_multimodal(run: Run) -> bool:
    """Whether a run has a λ to select."""
    return run.kind in ("multimodal", FINE_TUNED)
