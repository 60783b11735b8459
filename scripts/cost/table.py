"""The cost of a training as lines for a screen, and as plain values for a file."""

from typing import Any

from data.room import format_bytes
from mcan.cost import SAVED_BYTES, STATE_BYTES
from mcan.operations import add_bytes, add_flops
from scripts.cost.estimate import Estimate, estimate, memory_needed
from scripts.cost.machines import GPU, GPUS, Assumptions
from scripts.cost.workload import Workload

Estimates = dict[str, list[Estimate]]  # by the name of the GPU


def estimate_all(work: Workload, assumed: Assumptions) -> Estimates:
    """Every GPU, every number of them."""
    return {gpu.name: [estimate(work, gpu, n, assumed) for n in work.steps] for gpu in GPUS}


def describe_work(work: Workload, head: str, keep: int) -> list[str]:
    """What was counted: nothing here is assumed."""
    sizes, step = work.sizes, next(iter(work.steps.values()))
    flops, num_bytes = add_flops(step.operations), add_bytes(step.operations)
    saved = SAVED_BYTES * work.num_parameters
    evaluation = work.evaluation_batches * add_flops(work.evaluation)
    cells = sizes.grid[0] * sizes.grid[1]
    most = sizes.largest_grid[0] * sizes.largest_grid[1]
    processes = min(work.steps)
    share = f"1/{processes} of " if processes > 1 else ""
    rows = [
        ("parameters", f"{work.num_parameters / 1e6:.2f} M"),
        ("arithmetic", f"{flops / 1e12:.3f} TFLOP in matrix products"),
        ("memory traffic", f"{num_bytes / 1e9:.1f} GB, {flops / num_bytes:.0f} FLOP a byte"),
        ("kernels", f"{len(step.operations):,}"),
        (f"{head} head", describe_head(step)),
        ("features to read", f"{format_bytes(work.feature_bytes)}"),
        ("state in memory", f"{format_bytes(STATE_BYTES * work.num_parameters)}"),
        ("activations", f"{format_bytes(step.activation_bytes)} at {cells} cells, "
         f"{format_bytes(work.largest_step.activation_bytes)} at {most}"),
    ]  # fmt: skip
    epoch = [
        ("an epoch", f"{sizes.steps_per_epoch:,} steps, "
         f"{sizes.steps_per_epoch * flops * processes / 1e15:.1f} PFLOP, "
         f"{format_bytes(sizes.steps_per_epoch * work.feature_bytes)} of features"),
        ("an evaluation", f"{sizes.val_questions:,} questions, {evaluation / 1e15:.2f} PFLOP, "
         f"{format_bytes(work.evaluation_feature_bytes)} of features"),
        ("a checkpoint", f"{format_bytes(saved)}; keep={keep} needs room for {keep + 2}: "
         f"{format_bytes((keep + 2) * saved)}"),
    ]  # fmt: skip
    precision = str(work.dtype).removeprefix("torch.")
    title = f"a training step of {share}{sizes.batch_size} questions, {cells} cells each, "
    return [f"{title}{precision}", *align(rows), *align(epoch)]


def describe_head(step: Any) -> str:
    """The head's share in the work of a step."""
    own, whole = step.head_operations, step.operations
    return (
        f"{add_flops(own) / add_flops(whole):.3%} of the arithmetic, "
        f"{add_bytes(own) / add_bytes(whole):.2%} of the traffic, {len(own):,} of the kernels"
    )


def align(rows: list[tuple[str, str]]) -> list[str]:
    return [f"  {name:<18}{value}" for name, value in rows]


def describe_estimates(work: Workload, estimates: Estimates, assumed: Assumptions) -> list[str]:
    """Two tables: each GPU with the fewest of them, then hours of a run by their number."""
    needed, fewest = memory_needed(work, assumed), min(work.steps)
    lines = [
        f"estimated, not measured: on {fewest} GPU{'s' if fewest > 1 else ''}",
        f"{'':<18}{'compute':>9}{'loading':>9}{'exchange':>10}{'epoch':>9}"
        f"{f'{work.sizes.num_epochs} epochs':>11}{'memory':>12}",
    ]
    for gpu in GPUS:
        first = estimates[gpu.name][0]
        lines.append(
            f"  {gpu.name:<16}{1e3 * first.compute:>6.1f} ms{1e3 * first.loading:>6.1f} ms"
            f"{1e3 * first.exchange:>7.1f} ms{first.epoch_hours:>7.2f} h{first.run_hours:>9.1f} h"
            f"{describe_fit(needed, gpu):>12}"
        )
    counts = [f"{n:>10}" for n in work.steps]
    lines += ["", f"hours of {work.sizes.num_epochs} epochs on so many GPUs, and what limits them:"]
    lines += [f"  c compute, x exchange of gradients, l loading\n{'':<18}{''.join(counts)}"]
    signs = {"compute": "c", "exchange": "x", "loading": "l"}
    for name, row in estimates.items():
        cells = [f"{f'{each.run_hours:.1f} {signs[each.bottleneck]}':>10}" for each in row]
        lines.append(f"  {name:<16}{''.join(cells)}")
    return lines


def describe_fit(needed: float, gpu: GPU) -> str:
    return f"{needed:.1f} GB" if needed <= gpu.memory else f"{needed:.0f} GB: no"


def describe_assumptions(assumed: Assumptions) -> list[str]:
    """What the estimate rests on."""
    return [
        f"assumed: kernels reach {assumed.utilisation:.0%} of a GPU's peak and take "
        f"{assumed.launch:g} µs at least;",
        f"  {assumed.gpus_per_node} GPUs a node, {assumed.within_node:g} GB/s between them and "
        f"{assumed.between_nodes:g} GB/s between nodes;",
        f"  each node reads {assumed.disk:g} GB/s and has nothing in its page cache; the head fits "
        "its largest K in every step.",
    ]


def as_values(work: Workload, estimates: Estimates, assumed: Assumptions) -> dict[str, Any]:
    """All of it for a JSON file, in FLOPs, bytes and seconds."""
    step = next(iter(work.steps.values()))
    return {
        "parameters": work.num_parameters,
        "precision": str(work.dtype).removeprefix("torch."),
        "sizes": vars(work.sizes),
        "step": {
            "flops": add_flops(step.operations),
            "bytes": add_bytes(step.operations),
            "kernels": len(step.operations),
            "head_flops": add_flops(step.head_operations),
            "head_bytes": add_bytes(step.head_operations),
            "head_kernels": len(step.head_operations),
            "feature_bytes": work.feature_bytes,
            "activation_bytes": step.activation_bytes,
            "largest_activation_bytes": work.largest_step.activation_bytes,
        },
        "evaluation": {
            "flops": work.evaluation_batches * add_flops(work.evaluation),
            "bytes": work.evaluation_batches * add_bytes(work.evaluation),
            "feature_bytes": work.evaluation_feature_bytes,
        },
        "checkpoint_bytes": SAVED_BYTES * work.num_parameters,
        "memory_bytes": round(1e9 * memory_needed(work, assumed)),
        "assumed": vars(assumed),
        "gpus": {
            name: [
                {**vars(each), "bottleneck": each.bottleneck, "run_hours": each.run_hours}
                for each in row
            ]
            for name, row in estimates.items()
        },
    }
