"""make lambda: what every λ and every k_max would give, from one pass over the validation set.

python -m scripts.select_lambda checkpoint=runs/<name>
"""

from dataclasses import asdict

import numpy as np

from configs.schema.trained import SelectLambda
from data.io.atomic_files import atomic_write, write_json
from figures.lambda_figure import draw_lambda_figure
from figures.requirements import has_matplotlib
from mcan.evaluation.every_k import answer_candidates
from mcan.evaluation.lambda_report import format_picks, format_use, write_table
from mcan.evaluation.lambda_selection import LambdaTable, assign_folds, make_grid, pick_lambda
from mcan.evaluation.report import describe_evaluated, format_warning
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import changed_options, load_models, open_split
from scripts.cli.command import command
from scripts.cli.output import choose_files
from scripts.cli.processes import open_processes

NAMES = ("table.csv", "table.json", "table.png")


@command("select_lambda")
def main(settings: SelectLambda) -> None:
    """Select, on as many processes as there are."""
    with open_processes(settings.runtime) as world:
        select_lambda(settings, world)


def select_lambda(settings: SelectLambda, world: World) -> None:
    """Answer under every k in one pass; the first process makes the table, prints and writes."""
    lams = make_grid(**vars(settings.grid))
    set_up_torch(settings.runtime)
    (trained,) = load_models(settings, [settings.checkpoint], world)
    trained.check_selects()
    split = open_split([trained], settings, world)
    image_ids = np.array([annotation.image_id for annotation in split.annotations])
    folds = assign_folds(image_ids, settings.folds, settings.seed)
    files = choose_files(settings.output, trained.path.parent / "lambda", NAMES)
    dtype = choose_dtype(settings.runtime.precision, world.device)
    candidates = answer_candidates(trained.model, split.batches(world), world, dtype)
    if not world.is_first:
        return
    table = LambdaTable(candidates, split.annotations, trained.words.answers.words, lams)
    picks = [pick_lambda(table, k_max, folds) for k_max in range(1, candidates.k_max + 1)]
    rows = table.rows()
    report = {
        **describe_evaluated(trained, split),
        "folds": settings.folds,
        "seed": settings.seed,
        "picks": [asdict(pick) for pick in picks],
        "rows": [asdict(row) for row in rows],
    }
    write_table(files[0], rows)
    if has_matplotlib():
        with atomic_write(files[2]) as temporary:
            draw_lambda_figure(rows, picks, f"{trained.name} on {split.name}", temporary)
    write_json(files[1], report, indent=1)  # the last: where it is, the others are too
    print(format_warning(report), end="")
    print(format_picks(rows, picks))
    if not has_matplotlib():
        files.pop()
        print("no figure was drawn: that needs matplotlib: .venv/bin/pip install -e '.[plot]'")
    use = format_use(picks[-1], trained, changed_options(settings))
    print(f"written to {', '.join(map(str, files))}", use, sep="\n")


if __name__ == "__main__":
    main()
