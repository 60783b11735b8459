"""What is written and printed beside the metrics of an evaluated model."""

from collections.abc import Mapping
from typing import Any

from mcan.evaluation.evaluation_split import EvaluationSplit
from mcan.evaluation.metrics import share_components
from mcan.evaluation.trained_model import TrainedModel

NUM_HARDEST = 3
SPARSITY = {
    "zero_weight_share": "{unit}s of weight 0",
    "outside_support_share": "image outside the support",
}
SHOWN_ELSEWHERE = (
    "accuracy",
    "collapsed_share",
    "perplexity",
    *SPARSITY,
    "validation_questions_per_second",
)


def describe_evaluated(trained: TrainedModel, split: EvaluationSplit) -> dict[str, Any]:
    """What was evaluated on what; in which batches, where K* depends on them."""
    batches = {} if trained.batch_size is None else {"evaluation_batch_size": split.batch_size}
    return {
        "checkpoint": str(trained.path),
        "run": trained.name,
        "epoch": trained.epoch,
        "attention": trained.options,
        "split": split.name,
        "data": str(split.folder.root),
        "trained_on": list(split.folder.layout.overlap(trained.train_split, split.name)),
        "num_questions": len(split.question_ids),
        **batches,
    }


def format_warning(described: Mapping[str, Any]) -> str:
    """A line to print where the model was trained on some of the questions, else nothing."""
    if not described["trained_on"]:
        return ""
    return (
        f"WARNING: {described['checkpoint']} was trained on {'+'.join(described['trained_on'])}: "
        f"its accuracy there does not measure generalisation\n"
    )


def format_groups(metrics: Mapping[str, Any], unit: str) -> str:
    """The hardest templates, K*, accuracy by objects, and sparsity, as lines to print.

    `unit` is what has a weight: a cell or a region.
    """
    lines = []
    accuracies = metrics.get("accuracy_by_template", {})
    hardest = sorted(accuracies, key=lambda name: float(accuracies[name]))[:NUM_HARDEST]
    if hardest:
        named = ", ".join(f"{name} {accuracies[name]:.2f}" for name in hardest)
        lines += [f"hardest templates: {named}", ""]
    by_objects = metrics.get("accuracy_by_objects", {})
    if "component_counts" in metrics:
        lines += format_components(metrics)
    else:
        lines += [f"{name:18}{accuracy:9.2f}" for name, accuracy in by_objects.items()]
    if by_objects and not accuracies:  # no metadata, which give every question a template
        lines += ['objects: of the questions "how many" alone, by the number that most people gave']
    if "collapsed_share" in metrics:
        lines += [f"collapsed components: {100 * metrics['collapsed_share']:.2f} %"]
    if "perplexity" in metrics:
        lines += [f"perplexity of the weights (median): {metrics['perplexity']:.1f} {unit}s"]
    shown = [(label, metrics[name]) for name, label in SPARSITY.items() if name in metrics]
    lines += [f"{label.format(unit=unit)}: {100 * share:.2f} %" for label, share in shown]
    return "\n".join(lines)


def format_others(metrics: Mapping[str, Any]) -> str:
    """Numbers of user-defined metrics, as lines to print."""
    numbers = {
        name: value
        for name, value in metrics.items()
        if type(value) in (int, float) and name not in SHOWN_ELSEWHERE
    }
    return "".join(f"{name}: {value:g}\n" for name, value in numbers.items())


def format_components(metrics: Mapping[str, Any]) -> list[str]:
    """Shares of K*, over all questions and by the objects they are about."""
    accuracies = metrics.get("accuracy_by_objects", {})
    groups = {
        "all questions": metrics["component_counts"],
        **metrics.get("component_counts_by_objects", {}),
    }
    numbers = range(1, len(metrics["component_counts"]) + 1)
    header = "".join(f"{f'K* = {k}':>9}" for k in numbers)
    lines = [f"{'':18}{header} (%)" + ("   accuracy" if accuracies else "")]
    for name, counts in groups.items():
        shares = "".join(f"{share:9.1f}" for share in share_components(counts))
        accuracy = f"{accuracies[name]:15.2f}" if name in accuracies else ""
        lines.append(f"{name:18}{shares}{accuracy}")
    return lines
