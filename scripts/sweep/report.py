"""The report of a sweep, at any time: one CSV, a heat map, the best setting, what is not there."""

from shlex import quote

from data.io.atomic_files import atomic_write
from figures.requirements import has_matplotlib
from mcan.training.summary import TENSORBOARD, mean_and_deviation
from scripts.sweep.heat_map import draw_heat_map
from scripts.sweep.plan import Job, Plan
from scripts.sweep.results import Cell, choose_best, group, read_results, write_results
from scripts.sweep.states import DONE, FAILED, MISSING, RUNNING, STOPPED, find_state, make_run


def report(plan: Plan) -> dict[str, str]:
    """Print and write it; the state of every job."""
    found = {job.name: find_state(plan, job) for job in plan.jobs}
    states = {name: state for name, (state, _) in found.items()}
    done = [job for job in plan.jobs if states[job.name] == DONE]
    results = [result for job in done for result in read_results(plan, job)]
    table, picture = plan.folder / "results.csv", plan.folder / "heat_map.png"
    write_results(plan, results, states, table)
    lines = [f"{plan.folder}: {len(done)} of {len(plan.jobs)} runs are done"]
    files = [str(table)]
    if results:
        cells = group(results)
        best = choose_best(cells)
        lines.append(describe_best(best))
        if has_matplotlib() and any(cell.lam is not None for cell in cells):
            title = f"{plan.folder.name}: mean ± standard deviation over seeds"
            with atomic_write(picture) as temporary:
                draw_heat_map(cells, best, title, temporary)
            files.append(str(picture))
    limited = [job.name for job in done if is_limited(plan, job)]
    if limited:
        lines.append(f"NOT WHOLE RUNS (runtime.limit_batches): {', '.join(limited)}")
    for state in (FAILED, STOPPED, RUNNING, MISSING):
        lines += [f"{state}: {name}: {why}" for name, (what, why) in found.items() if what == state]
    lines.append(f"written to {' and '.join(files)}")
    lines.append(f"to compare them: {TENSORBOARD} --logdir {quote(str(plan.folder))}")
    print("\n".join(lines), flush=True)
    return states


def is_limited(plan: Plan, job: Job) -> bool:
    """Whether a finished job trained on a part of its batches."""
    return "limit_batches" in make_run(plan, job).metrics()[-1]


def describe_best(best: Cell) -> str:
    """The best setting in one line, with the accuracy of held-out folds beside it."""
    settings = [*best.others]
    if best.lam is not None:
        settings += [f"attention.k_max={best.k_max}", f"attention.lam={best.lam:g}"]
    seeds = f"{len(best.accuracies)} seed{'s' if len(best.accuracies) > 1 else ''}"
    named = " ".join(settings) or "the only setting"
    told = f"best: {named}: {mean_and_deviation(best.accuracies)} ({seeds})"
    if best.held_out is not None:
        told += f"; {best.held_out:.2f} with λ chosen on other questions than those scored"
    return told
