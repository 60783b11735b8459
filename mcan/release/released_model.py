"""What a released model keeps of its checkpoint, and the numbers that were measured with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.io.atomic_files import read_json
from mcan.evaluation.metric_names import rename_old_metrics
from mcan.evaluation.trained_model import TrainedModel

# `lines` are the metrics of its epochs; what only training needs is left out
KEPT = (
    "config", "sizes", "attention", "train_split", "manifest", "vocabulary", "answers",
    "question_length", "commit", "lines", "model",
)  # fmt: skip


@dataclass(frozen=True)
class Measurement:
    """The accuracy on a split, in percent."""

    split: str
    num_questions: int | None  # None: older runs do not say
    overall: float
    by_answer_type: Mapping[str, float]
    source: str  # how it was measured


def strip_run_state(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a checkpoint without optimizer, loss scaling and position in the data."""
    kept = {name: content[name] for name in KEPT if name in content}
    progress = {name: content["progress"].get(name, 0) for name in ("epoch", "step")}
    return {**kept, "progress": progress}


def list_measurements(trained: TrainedModel, content: Mapping[str, Any]) -> list[Measurement]:
    """The validation of its last epoch, and the reports of `make evaluate` beside a checkpoint."""
    found = []
    progress = content["progress"]
    for line in content.get("lines", ()):
        # a checkpoint within an epoch has other weights than those that were validated
        if line["epoch"] + 1 == progress["epoch"] and not progress.get("step"):
            split, line = trained.config.get("val_split", "val"), rename_old_metrics(line)
            found.append(read_measurement(split, line, f"validation after epoch {line['epoch']}"))
    if trained.path.name == "last.pt" and progress.get("step"):
        return found  # reports name the epoch alone, in which last.pt had other weights before
    for path in sorted((trained.path.parent / "evaluate").glob("*.json")):
        report = read_json(path)
        if is_about(report, trained):
            report = rename_old_metrics(report)
            source = f"`make evaluate`{describe_conditions(report, trained)}"
            found.append(read_measurement(report["split"], report, source))
    return found


def is_about(report: Any, trained: TrainedModel) -> bool:
    """Whether a file of JSON is a report on this checkpoint as it is now, and no control."""
    if not isinstance(report, dict) or "accuracy" not in report or report.get("other_images"):
        return False
    same_name = Path(str(report.get("checkpoint"))).name == trained.path.name
    return same_name and report.get("epoch") == trained.epoch


def describe_conditions(report: Mapping[str, Any], trained: TrainedModel) -> str:
    """Changed options of the head, other data, and parts of the split that were trained on."""
    options = trained.options
    changed = [
        f"{name}={value}"
        for name, value in report["attention"].items()
        if options.get(name) != value
    ]
    conditions = [f"attention.{each}" for each in changed]
    data, own = (Path(str(root)).name for root in (report["data"], trained.config["data"]["root"]))
    if data != own:  # a folder of the same name is taken for the same data elsewhere
        conditions.append(f"on the data in {data}")
    if report["trained_on"]:
        conditions.append(f"**trained on {'+'.join(report['trained_on'])}**")
    return "".join(f", {each}" for each in conditions)


def read_measurement(split: str, metrics: Mapping[str, Any], source: str) -> Measurement:
    """The accuracy in a line of metrics.jsonl or in a report."""
    number = metrics.get("num_questions", metrics.get("validation_questions"))
    by_type = metrics["accuracy_by_answer_type"]
    return Measurement(split, number, metrics["accuracy"], by_type, source)
