"""What is measured of the finished runs, each measure by its own command and kept in its files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from configs.schema.trained import Evaluate, Figures, HumanAttention, SelectLambda
from data.io.atomic_files import read_json, write_json
from data.vqa.data_folder import DataFolder
from data.vqa.question_only import score_question_only
from mcan.evaluation.metric_names import rename_old_metrics
from mcan.head_options import selects_components
from scripts.cli.command import read_words
from scripts.cli.composition import Configuration
from scripts.paper.requirements import explain_no_figures, has_human_maps
from scripts.paper.runs import Run, call

FLOORS = {"cell": "lambda", "1e-6": "lambda-paper-floor"}  # and where each one's table lies
COMMANDS: dict[Configuration[Any], str] = {  # each with the models that it needs
    Configuration("evaluate", Evaluate): "checkpoint=x",
    Configuration("select_lambda", SelectLambda): "checkpoint=x",
    Configuration("human_attention", HumanAttention): "checkpoints=[x]",
    Configuration("figures", Figures): "checkpoints=[x]",
}


def check_shared(overrides: Sequence[str]) -> None:
    """Raise for settings of all measurements that one of their commands does not take."""
    for configuration, checkpoint in COMMANDS.items():
        try:
            configuration.compose(read_words([checkpoint, *overrides]))
        except ValueError as error:
            raise ValueError(f"measure, for {configuration.config_name}: {error}") from None


@dataclass(frozen=True)
class Measures:
    """The commands of a report; `overrides` are settings that all of them share.

    Files of the best epoch have the names that the commands give them, those of the last "-last".
    """

    folder: Path
    data: DataFolder
    split: str
    overrides: tuple[str, ...]
    epoch: str  # best | last

    @property
    def suffix(self) -> str:
        """What the names of files have in addition."""
        return "" if self.epoch == "best" else f"-{self.epoch}"

    def evaluate(self, run: Run, other_images: bool = False) -> dict[str, Any]:
        """Accuracy and K* of a run, or what it gets right when it is shown other images."""
        name = f"{self.split}{'-other-images' if other_images else ''}.json"
        path = run.folder / f"evaluate{self.suffix}" / name
        overrides = [f"checkpoint={run.checkpoint(self.epoch)}", f"output={path.parent}"]
        other = f"other_images={str(other_images).lower()}"
        return self._measure(path, [run], "evaluate", *overrides, other)

    def select_lambda(self, run: Run, floor: str) -> dict[str, Any]:
        """The table of λ of a multimodal run under one floor of its variances."""
        path = self.lambda_folder(run, floor) / "table.json"
        overrides = [f"checkpoint={run.checkpoint(self.epoch)}", f"output={path.parent}"]
        return self._measure(path, [run], "select_lambda", *overrides, f"attention.floor={floor}")

    def lambda_folder(self, run: Run, floor: str) -> Path:
        """Where the table of λ of a run lies."""
        return run.folder / f"{FLOORS[floor]}{self.suffix}"

    def compare_with_people(
        self, runs: Sequence[Run], name: str, lam: float | None = None
    ) -> dict[str, Any] | None:
        """Divergence from human maps, with another λ than the models' own; None without maps."""
        if not has_human_maps(self.data, self.split):
            return None
        path = self.folder / "human_attention" / f"{name}{self.suffix}" / f"{self.split}.json"
        overrides = [self._choose_checkpoints(runs), f"output={path.parent}"]
        overrides += [f"attention.lam={lam}"] if lam is not None else []
        return self._measure(path, runs, "human_attention", *overrides)

    def draw_figures(self, runs: Sequence[Run], num: int, name: str, *own: str) -> list[Path]:
        """Heads side by side over the same questions, as PNG files."""
        folder = self.folder / f"{name}{self.suffix}"
        mark = folder / "drawn.json"  # written last: where it is, all figures are
        if not is_younger(mark, self._checkpoints(runs)):
            if not num or explain_no_figures(self.data, self.split) is not None:
                return []
            for old in folder.glob("**/*.png"):
                old.unlink()
            choose = "choose=differ" if len(runs) > 1 else "choose=random"
            overrides = [self._choose_checkpoints(runs), f"output={folder}", f"num={num}", choose]
            self._call("figures", "figures", *overrides, "formats=[png]", *own)
            write_json(mark, {"num": num})
        return sorted(folder.glob("**/*.png"))

    def _checkpoints(self, runs: Sequence[Run]) -> list[Path]:
        return [run.checkpoint(self.epoch) for run in runs]

    def _choose_checkpoints(self, runs: Sequence[Run]) -> str:
        """The setting that names the models of a command."""
        return f"checkpoints=[{','.join(map(str, self._checkpoints(runs)))}]"

    def _measure(
        self, path: Path, runs: Sequence[Run], command: str, *overrides: str
    ) -> dict[str, Any]:
        """What a command writes, which runs unless that is there and younger than the runs."""
        if not is_younger(path, self._checkpoints(runs)):
            names = ", ".join(run.folder.name for run in runs)
            what = f"{command} of {names}, {self.epoch} epoch"
            print(what, flush=True)
            for stale in (path, path.with_suffix(".csv")):  # human_attention replaces no comparison
                stale.unlink(missing_ok=True)  # of other checkpoints: those of a folder that moved
            self._call(what, command, *overrides)
        return read(path)

    def _call(self, what: str, command: str, *overrides: str) -> None:
        where = [f"data.root={self.data.root}", f"split={self.split}"]
        call(["-m", f"scripts.{command}", *overrides, *where, *self.overrides], what)


def measure_question_only(run: Run, data: DataFolder, path: Path) -> dict[str, Any]:
    """The accuracy that a question's text alone gives on what a run validates; kept in a file."""
    if not is_younger(path, [run.checkpoint()]):
        config = run.config()
        trained, _ = data.layout.divide_training(config["train_split"])
        scores = score_question_only(data, trained, config["val_split"])
        data.release(trained)
        by_type = {"accuracy_by_answer_type": scores.per_answer_type}
        write_json(path, {"accuracy": scores.overall, **by_type}, indent=1)
    return read(path)


def is_younger(path: Path, checkpoints: Sequence[Path]) -> bool:
    """Whether what was measured is there, and of these checkpoints."""
    newest = max(checkpoint.stat().st_mtime for checkpoint in checkpoints)
    return path.is_file() and path.stat().st_mtime >= newest


def read(path: Path) -> dict[str, Any]:
    """The JSON that a command has written."""
    content = read_json(path)
    rows = content.get("rows", []) if isinstance(content, dict) else None  # of lambda
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{path} holds no report; delete it, and it is made again")
    if rows:
        content["rows"] = [rename_old_metrics(row) for row in rows]
    return rename_old_metrics(content)


def has_floors(run: Run) -> bool:
    """Whether a run has a λ to select, and that under any floor."""
    options = run.config()["attention"]
    return selects_components(options) and "floor" in options
