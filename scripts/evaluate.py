"""make evaluate: the official accuracy of a checkpoint on a split, and what its attention chose.

python -m scripts.evaluate checkpoint=runs/<name> split=val
"""

from configs.schema.trained import Evaluate
from data.io.atomic_files import write_json
from data.vqa.results import result_name
from mcan.evaluation.evaluator import evaluate_split
from mcan.evaluation.export import write_result_files
from mcan.evaluation.report import (
    describe_evaluated,
    format_groups,
    format_others,
    format_warning,
)
from mcan.runtime.distributed import World
from mcan.runtime.precision import choose_dtype
from mcan.runtime.torch_settings import set_up_torch
from scripts.cli.checkpoints import load_models, open_split
from scripts.cli.command import command
from scripts.cli.output import choose_files
from scripts.cli.processes import open_processes
from scripts.score import format_table


@command("evaluate")
def main(settings: Evaluate) -> None:
    """Evaluate, on as many processes as there are."""
    with open_processes(settings.runtime) as world:
        evaluate(settings, world)


def evaluate(settings: Evaluate, world: World) -> None:
    """Answer the split and score the answers; the first process prints and writes."""
    set_up_torch(settings.runtime)
    (trained,) = load_models(settings, [settings.checkpoint], world)
    split = open_split([trained], settings, world, other_images=settings.other_images)
    control = "-other-images" if settings.other_images else ""
    name = result_name(settings.split, trained.name + control, split.folder.layout)
    names = f"{settings.split}{control}.json", name
    report_file, result_file = choose_files(
        settings.output, trained.path.parent / "evaluate", names
    )
    dtype = choose_dtype(settings.runtime.precision, world.device)
    world.barrier()
    evaluation = evaluate_split(trained.model, split, world, dtype)
    if not world.is_first:
        return
    report = {
        **describe_evaluated(trained, split),
        "other_images": bool(settings.other_images),
        **evaluation.metrics,
        "precision": str(dtype).removeprefix("torch."),
        "num_processes": world.size,
    }
    write_result_files(
        {split.name: result_file},
        {split.name: split.question_ids},
        evaluation.predictions,
        trained.words.answers.words,
        split.folder,
    )
    write_json(report_file, report, indent=1)
    print(format_warning(report), end="")
    if settings.other_images:
        print("every question was shown another question's image: what is right is guessed\n")
    groups = format_groups(report, trained.manifest.unit)
    print(format_table(evaluation.scores), groups, sep="\n\n")
    print(f"\n{format_others(evaluation.metrics)}", end="")
    print(f"{report['validation_questions_per_second']:,} questions per second")
    print(f"written to {report_file} and, as the server wants it, {result_file}")


if __name__ == "__main__":
    main()
