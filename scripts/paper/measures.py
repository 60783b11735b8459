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
    """The commands of a report; `words` are settings that all of them share.

    Files of the best epoch have the names that the commands give them, those of the last "-last".
    """

    folder: Path
    data_root: str
    words: tuple[str, ...]
    epoch: str  # best | last

    @property
    def suffix(self) -> str:
        """What the names of files have in addition."""
        return "" if self.epoch == "best" else f"-{self.epoch}"

    def evaluate(self, run: Run, other_images: bool = False) -> dict[str, Any]:
        """Accuracy and K* of a run, or what it gets right when it is shown other images."""
        name = f"val{'-other-images' if other_images else ''}.json"
        path = run.folder / f"evaluate{self.suffix}" / name
        words = [f"checkpoint={run.checkpoint(self.epoch)}", f"output={path.parent}"]
        other = f"other_images={str(other_images).lower()}"
        return self._measure(path, run, "evaluate", *words, other)

    def select_lambda(self, run: Run, floor: str) -> dict[str, Any]:
        """The table of λ of a multimodal run under one floor of its variances."""
        path = self.lambda_folder(run, floor) / "table.json"
        words = [f"checkpoint={run.checkpoint(self.epoch)}", f"output={path.parent}"]
        return self._measure(path, run, "select_lambda", *words, f"attention.floor={floor}")

    def lambda_folder(self, run: Run, floor: str) -> Path:
        """Where the table of λ of a run lies."""
        return run.folder / f"{FLOORS[floor]}{self.suffix}"

    def compare_with_people(
        self, runs: Sequence[Run], name: str, lam: float | None = None
    ) -> dict[str, Any] | None:
        """Divergence from human maps, with another λ than the models' own; None without maps."""
        if not (Path(self.data_root) / "human_attention").is_dir():
            return None
        path = self.folder / "human_attention" / f"{name}{self.suffix}" / "val.json"
        words = [self._name(runs), f"output={path.parent}"]
        words += [f"attention.lam={lam}"] if lam is not None else []
        return self._measure(path, runs[-1], "human_attention", *words)

    def draw_figures(
        self, runs: Sequence[Run], num: int, name: str = "figures", *own: str
    ) -> list[Path]:
        """Heads side by side over the same questions, as PNG files."""
        folder = self.folder / f"{name}{self.suffix}"
        if num and not any(folder.glob("**/*.png")):
            words = [self._name(runs), f"output={folder}", f"num={num}", "choose=differ"]
            self._call("figures", "figures", *words, "formats=[png]", *own)
        return sorted(folder.glob("**/*.png"))

    def _name(self, runs: Sequence[Run]) -> str:
        return f"checkpoints=[{','.join(str(run.checkpoint(self.epoch)) for run in runs)}]"

    def _measure(self, path: Path, run: Run, command: str, *words: str) -> dict[str, Any]:
        """What a command writes, which runs unless that is there and younger than the run."""
        trained = run.checkpoint(self.epoch).stat().st_mtime
        if not (path.is_file() and path.stat().st_mtime >= trained):
            what = f"{command} of {run.folder.name}, {self.epoch} epoch"
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
    return run.kind == FINE_TUNED or run.kind.startswith("multimodal")
