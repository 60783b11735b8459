"""make paper: train every head with every seed, measure, and report beside the paper's numbers.

python -m scripts.paper dataset=shapes seeds=[1,2]
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from configs.schema.training import Paper
from data.io.atomic_files import atomic_write
from data.vqa.data_folder import DataFolder
from scripts.cli.command import command
from scripts.paper.accuracy_tables import tabulate_accuracy, tabulate_sparsity
from scripts.paper.measures import FLOORS, Measures, check_shared, has_floors, measure_question_only
from scripts.paper.provenance import list_facts
from scripts.paper.report import Picture, Report, to_html, to_markdown
from scripts.paper.requirements import check_data, list_missing
from scripts.paper.runs import FINE_TUNED, HEADS, Run, plan_runs, train_runs
from scripts.paper.tables import (
    EPOCHS,
    Comparison,
    Result,
    Results,
    Table,
    join_models,
    of_epoch,
    tabulate_divergence,
    tabulate_lambda,
)


@command("paper")
def main(settings: Paper) -> None:
    """Train, measure and write the report; what is there already is not done again."""
    folder, runs = Path(settings.runs), plan(settings)
    if not runs:
        raise ValueError("paper needs seeds=[…] and heads=[…]: at least one of each")
    for run in runs:  # all before the first: each may train for days
        run.check()
    check_shared(list_shared(settings, runs))
    check_data(runs)
    train_runs(runs, settings.gpus, settings.parallel)
    report = measure(settings, runs, folder)
    text = to_markdown(report, folder)
    for name, content in (("report.md", text), ("report.html", to_html(report))):
        with atomic_write(folder / name) as temporary:
            temporary.write_text(content, encoding="utf-8")
    print(text.split("## Figures")[0])
    print(f"written to {folder / 'report.md'} and {folder / 'report.html'}", flush=True)


def plan(settings: Paper) -> list[Run]:
    """The runs that the settings ask for."""
    root = [f"data.root={settings.data.root}"] if settings.data.root else []
    return plan_runs(
        settings.dataset,
        settings.seeds,
        Path(settings.runs),
        [*root, *shlex.split(settings.train)],
        settings.fine_tuning_epochs,
        settings.family,
        settings.heads,
    )


def list_shared(settings: Paper, runs: list[Run]) -> tuple[str, ...]:
    """The settings of all measurements, with the modules that the heads are registered in."""
    modules = runs[0].settings().modules
    named = [f"modules=[{','.join(modules)}]"] if modules else []
    return (*named, *shlex.split(settings.measure))


def measure(settings: Paper, runs: list[Run], folder: Path) -> Report:
    """Evaluate, select λ, compare with people and draw, for each epoch that is asked for."""
    config = runs[0].config()
    data = DataFolder(config["data"]["root"], config["data"].get("layout", "vqa_v2"))
    question_only = measure_question_only(runs[0], data, folder / "question_only.json")
    shared = list_shared(settings, runs)
    epochs = EPOCHS if settings.epoch == "both" else (settings.epoch,)
    parts = []
    for epoch in epochs:
        measures = Measures(folder, data, config["val_split"], shared, epoch)
        parts.append(measure_epoch(settings, runs, measures, question_only))
    title = "Multimodal continuous visual attention: the paper's experiments"
    return Report(
        f"{title}, and sparse attention" if settings.family == "sparse" else title,
        list_facts(runs),
        [table for part in parts for table in part.tables],
        [picture for part in parts for picture in part.pictures],
        list_missing(settings, data, config["val_split"]),
    )


@dataclass(frozen=True)
class MeasuredEpoch:
    """What a report has of one epoch of every run."""

    tables: list[Table]
    pictures: list[Picture]


def measure_epoch(
    settings: Paper, runs: list[Run], measures: Measures, question_only: Result
) -> MeasuredEpoch:
    """The tables and pictures of the models of one epoch."""
    evaluations: Results = {}
    controls: Results = {}
    lambdas: Results = {floor: [] for floor in FLOORS}
    for run in runs:
        evaluations.setdefault(run.kind, []).append(measures.evaluate(run))
        controls.setdefault(run.kind, []).append(measures.evaluate(run, other_images=True))
        for floor in FLOORS if has_floors(run) else ():
            lambdas[floor].append(measures.select_lambda(run, floor))
    picked = find_picked(runs, lambdas)
    own, with_picked = compare_with_people(settings, runs, measures, picked)
    tables = [tabulate_accuracy(evaluations, controls, question_only, settings.dataset)]
    if settings.family == "sparse":
        tables.append(tabulate_sparsity(evaluations))
    if own:
        tables.append(tabulate_divergence(own, with_picked, settings.dataset))
    if any(lambdas.values()):
        tables.append(tabulate_lambda(lambdas, settings.dataset))
    return MeasuredEpoch(
        [of_epoch(table, measures.epoch, evaluations) for table in tables],
        list_pictures(settings, runs, measures),
    )


def find_picked(runs: list[Run], lambdas: Results) -> dict[str, float]:
    """The λ picked for each run under its own floor of the variances, by the run's name.

    None is picked with k_max = 1, nor for a floor that is not among those of the report.
    """
    floors = {run.folder.name: run.config()["attention"].get("floor") for run in runs}
    found = [
        (table["run"], table["picks"][-1]["lam"])
        for tables in lambdas.values()
        for table in tables
        if table["attention"]["floor"] == floors[table["run"]]
    ]
    return {name: lam for name, lam in found if lam is not None}


def compare_with_people(
    settings: Paper, runs: list[Run], measures: Measures, picked: Mapping[str, float]
) -> tuple[list[Comparison], list[Comparison]]:
    """The comparisons of every seed's heads, and of those with a λ picked with that one.

    Both are empty where the data has no human maps.
    """
    own: list[Comparison | None] = []
    with_picked: list[Comparison | None] = []
    for seed in settings.seeds:
        heads, variants = split_families(settings, runs, seed)
        name = f"seed{seed}{name_subset(settings)}"
        comparison = measures.compare_with_people(heads, name)
        if variants:  # the controls are the same: they depend on the maps alone
            more = measures.compare_with_people(variants, f"{name}-sparse")
            comparison = comparison and more and join_models(comparison, more)
        own.append(comparison)
        for run in (each for each in [*heads, *variants] if each.folder.name in picked):
            name = f"seed{seed}" if run.kind == "multimodal" else run.folder.name
            lam = picked[run.folder.name]
            with_picked.append(measures.compare_with_people([run], f"{name}-lam{lam}", lam))
    return [*filter(None, own)], [*filter(None, with_picked)]


def split_families(settings: Paper, runs: list[Run], seed: int) -> tuple[list[Run], list[Run]]:
    """A seed's runs of the heads, and of their variants."""
    of_seed = [run for run in runs if run.seed == seed and run.kind != FINE_TUNED]
    heads = [run for run in of_seed if run.kind in settings.heads]
    return heads, [run for run in of_seed if run.kind not in settings.heads]


def name_subset(settings: Paper) -> str:
    """What the names of files about several heads have in addition, unless these are all three."""
    heads = tuple(settings.heads)
    return "" if heads == HEADS else f"-{'-'.join(heads)}"


def list_pictures(settings: Paper, runs: list[Run], measures: Measures) -> list[Picture]:
    """λ of the first seed's multimodal model, and its heads over the same questions."""
    heads, variants = split_families(settings, runs, settings.seeds[0])
    name = f"figures{name_subset(settings)}"
    drawn = measures.draw_figures(heads, settings.figures, name)
    if variants:
        drawn += measures.draw_figures(
            variants, settings.figures, f"{name}-sparse", "components=false"
        )
    return [
        *(each for run in filter(has_floors, heads) for each in show_lambda(run, measures)),
        *(
            Picture(path, f"{path.stem.replace('_', ' ')}, {measures.epoch} epoch")
            for path in drawn
        ),
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


if __name__ == "__main__":
    main()
