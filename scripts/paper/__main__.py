"""make paper: train every head with every seed, measure, and report beside the paper's numbers.

python -m scripts.paper dataset=shapes seeds=[1,2]
"""

import shlex
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from data.files import replacing
from scripts.entry import command
from scripts.paper.circumstances import list_facts
from scripts.paper.measures import FLOORS, Measures, is_multimodal
from scripts.paper.report import Picture, Report, to_html, to_markdown
from scripts.paper.runs import HEADS, Run, plan_runs, train
from scripts.paper.tables import tabulate_accuracy, tabulate_divergence, tabulate_lambda
from scripts.settings import require_text


@command("paper")
def main(config: DictConfig) -> None:
    """What is there already is not done again."""
    folder = Path(require_text("runs", config.runs))
    runs = plan_runs(
        config.dataset,
        list(config.seeds),
        folder,
        shlex.split(config.train),
        config.fine_tuning_epochs,
    )
    if not runs:
        raise ValueError("paper needs seeds=[…]: at least one")
    for run in runs:
        train(run, config.gpus)
    report = measure(config, runs, folder)
    for name, text in (
        ("report.md", to_markdown(report, folder)),
        ("report.html", to_html(report)),
    ):
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    print((folder / "report.md").read_text(encoding="utf-8").split("## Figures")[0])
    print(f"written to {folder / 'report.md'} and {folder / 'report.html'}", flush=True)


def measure(config: DictConfig, runs: list[Run], folder: Path) -> Report:
    """Evaluate, select λ, compare with people and draw."""
    root = runs[0].config()["data"]["root"]
    measures = Measures(folder, root, tuple(shlex.split(config.measure)))
    evaluations: dict[str, list[dict[str, Any]]] = {}
    controls: dict[str, list[dict[str, Any]]] = {}
    tables: dict[str, list[dict[str, Any]]] = {floor: [] for floor in FLOORS}
    own, under_picked = [], []
    for run in runs:
        evaluations.setdefault(run.kind, []).append(measures.evaluate(run))
        controls.setdefault(run.kind, []).append(measures.evaluate(run, other_images=True))
        for floor in FLOORS if is_multimodal(run) else ():
            tables[floor].append(measures.select_lambda(run, floor))
    picked = {table["run"]: table["picks"][-1]["lam"] for table in tables["cell"]}
    for seed in config.seeds:
        heads = [run for run in runs if run.seed == seed and run.kind in HEADS]
        own.append(measures.compare_with_people(heads))
        lam = picked[heads[-1].folder.name]
        under_picked.append(measures.compare_with_people(heads[-1:], lam))
    first = [run for run in runs if run.seed == config.seeds[0] and run.kind in HEADS]
    drawn = measures.draw_figures(first, config.figures)
    count = evaluations["discrete"][0]["num_questions"]
    return Report(
        "Multimodal continuous visual attention: the paper's experiments",
        list_facts(runs),
        [
            tabulate_accuracy(evaluations, controls, config.dataset, count),
            tabulate_divergence(own, under_picked),
            tabulate_lambda(tables),
        ],
        [*show_lambda(first[-1]), *(Picture(path, path.stem.replace("_", " ")) for path in drawn)],
        list_missing(config, own),
    )


def show_lambda(run: Run) -> list[Picture]:
    """Accuracy and K* against λ, under each floor."""
    pictures = {floor: run.folder / name / "table.png" for floor, name in FLOORS.items()}
    return [
        Picture(path, f"Accuracy and shares of K* against λ, floor {floor}, {run.folder.name}")
        for floor, path in pictures.items()
        if path.is_file()
    ]


def list_missing(config: DictConfig, comparisons: list[dict[str, Any] | None]) -> list[str]:
    """What the paper has and this report has not."""
    missing = ["accuracy on test-dev and test-standard: needs a submission of `make export`"]
    if config.dataset != "vqa_v2":
        missing.append("VQA-v2 and VQA-HAT: `make paper DATA=vqa_v2`, on GPUs")
    if None in comparisons:
        missing.append("human attention: the data folder has no maps")
    if not config.figures:
        missing.append("figures: figures=0")
    return missing


if __name__ == "__main__":
    main()
