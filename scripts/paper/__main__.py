"""make paper: train every head with every seed, measure, and report beside the paper's numbers.

python -m scripts.paper dataset=shapes seeds=[1,2]
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from configs.schema.training import Paper
from data.io.atomic_files import atomic_write
from scripts.cli.command import command
from scripts.paper.measures import FLOORS, Measures, is_multimodal
from scripts.paper.provenance import list_facts
from scripts.paper.report import Picture, Report, to_html, to_markdown
from scripts.paper.runs import FINE_TUNED, HEADS, Run, plan_runs, train_runs
from scripts.paper.tables import (
    EPOCHS,
    Comparison,
    Results,
    Table,
    join_models,
    of_epoch,
    tabulate_accuracy,
    tabulate_divergence,
    tabulate_lambda,
    tabulate_sparsity,
)


@command("paper")
def main(settings: Paper) -> None:
    """Train, measure and write the report; what is there already is not done again."""
    folder, shared = Path(settings.runs), shlex.split(settings.train)
    epochs = settings.fine_tuning_epochs
    runs = plan_runs(settings.dataset, settings.seeds, folder, shared, epochs, settings.family)
    if not runs:
        raise ValueError("paper needs seeds=[…]: at least one")
    for run in runs:  # all before the first: each may train for days
        run.check()
    train_runs(runs, settings.gpus, settings.parallel)
    report = measure(settings, runs, folder)
    text = to_markdown(report, folder)
    for name, content in (("report.md", text), ("report.html", to_html(report))):
        with atomic_write(folder / name) as temporary:
            temporary.write_text(content, encoding="utf-8")
    print(text.split("## Figures")[0])
    print(f"written to {folder / 'report.md'} and {folder / 'report.html'}", flush=True)


def measure(settings: Paper, runs: list[Run], folder: Path) -> Report:
    """Evaluate, select λ, compare with people and draw, for each epoch that is asked for."""
    root, words = runs[0].config()["data"]["root"], tuple(shlex.split(settings.measure))
    epochs = EPOCHS if settings.epoch == "both" else (settings.epoch,)
    parts = [
        measure_epoch(settings, runs, Measures(folder, root, words, epoch)) for epoch in epochs
    ]
    title = "Multimodal continuous visual attention: the paper's experiments"
    return Report(
        f"{title}, and sparse attention" if settings.family == "sparse" else title,
        list_facts(runs),
        [table for part in parts for table in part.tables],
        [picture for part in parts for picture in part.pictures],
        list_missing(settings, parts[0].has_human_maps),
    )


@dataclass(frozen=True)
class MeasuredEpoch:
    """What a report has of one epoch of every run."""

    tables: list[Table]
    pictures: list[Picture]
    has_human_maps: bool


def measure_epoch(settings: Paper, runs: list[Run], measures: Measures) -> MeasuredEpoch:
    """The tables and pictures of the models of one epoch."""
    evaluations: Results = {}
    controls: Results = {}
    lambdas: Results = {floor: [] for floor in FLOORS}
    for run in runs:
        evaluations.setdefault(run.kind, []).append(measures.evaluate(run))
        controls.setdefault(run.kind, []).append(measures.evaluate(run, other_images=True))
        for floor in FLOORS if is_multimodal(run) else ():
            lambdas[floor].append(measures.select_lambda(run, floor))
    picked = {table["run"]: table["picks"][-1]["lam"] for table in lambdas["cell"]}
    own, with_picked = compare_with_people(settings.seeds, runs, measures, picked)
    count = evaluations["discrete"][0]["num_questions"]
    tables = [
        tabulate_accuracy(evaluations, controls, settings.dataset, count),
        tabulate_divergence(own, with_picked),
        tabulate_lambda(lambdas),
    ]
    if settings.family == "sparse":
        tables.insert(1, tabulate_sparsity(evaluations))
    return MeasuredEpoch(
        [of_epoch(table, measures.epoch, evaluations) for table in tables],
        list_pictures(settings, runs, measures),
        None not in own,
    )


def compare_with_people(
    seeds: Sequence[int], runs: list[Run], measures: Measures, picked: Mapping[str, float]
) -> tuple[list[Comparison | None], list[Comparison | None]]:
    """The comparisons of every seed's heads, and of its multimodal ones with the λ picked."""
    own: list[Comparison | None] = []
    with_picked: list[Comparison | None] = []
    for seed in seeds:
        heads, variants = split_families(runs, seed)
        comparison = measures.compare_with_people(heads, f"seed{seed}")
        if variants:  # the controls are the same: they depend on the maps alone
            more = measures.compare_with_people(variants, f"seed{seed}-sparse")
            comparison = comparison and more and join_models(comparison, more)
        own.append(comparison)
        for run in filter(is_multimodal, [*heads, *variants]):
            name = f"seed{seed}" if run in heads else run.folder.name
            lam = picked[run.folder.name]
            with_picked.append(measures.compare_with_people([run], f"{name}-picked", lam))
    return own, with_picked


def split_families(runs: list[Run], seed: int) -> tuple[list[Run], list[Run]]:
    """A seed's runs of the paper's heads, and of their variants."""
    of_seed = [run for run in runs if run.seed == seed and run.kind != FINE_TUNED]
    heads = [run for run in of_seed if run.kind in HEADS]
    return heads, [run for run in of_seed if run.kind not in HEADS]


def list_pictures(settings: Paper, runs: list[Run], measures: Measures) -> list[Picture]:
    """λ of the paper's multimodal model, and the first seed's heads over the same questions."""
    heads, variants = split_families(runs, settings.seeds[0])
    drawn = measures.draw_figures(heads, settings.figures)
    if variants:
        drawn += measures.draw_figures(
            variants, settings.figures, "figures-sparse", "components=false"
        )
    names = [(path, path.stem.replace("_", " ")) for path in drawn]
    return [
        *show_lambda(heads[-1], measures),
        *(Picture(path, f"{name}, {measures.epoch} epoch") for path, name in names),
    ]


def show_lambda(run: Run, measures: Measures) -> list[Picture]:
    """Accuracy and K* against λ, under each floor."""
    pictures = {floor: measures.lambda_folder(run, floor) / "table.png" for floor in FLOORS}
    name = f"{run.folder.name}, {measures.epoch} epoch"
    return [
        Picture(path, f"Accuracy and shares of K* against λ, floor {floor}, {name}")
        for floor, path in pictures.items()
        if path.is_file()
    ]


def list_missing(settings: Paper, has_human_maps: bool) -> list[str]:
    """What the paper has and this report has not."""
    missing = ["accuracy on test-dev and test-standard: needs a submission of `make export`"]
    if settings.dataset != "vqa_v2":
        missing.append("VQA-v2 and VQA-HAT: `make paper DATA=vqa_v2`, on GPUs")
    if not has_human_maps:
        missing.append("human attention: the data folder has no maps")
    if not settings.figures:
        missing.append("figures: figures=0")
    return missing


if __name__ == "__main__":
    main()
