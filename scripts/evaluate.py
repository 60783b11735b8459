"""make evaluate: the official accuracy of a checkpoint on a split, and what its attention chose.

python -m scripts.evaluate checkpoint=runs/<name> split=val
"""

import time
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from data.accuracy import Scores, average_percent, score_results
from data.files import replacing, write_json
from data.results import check_results, result_name, write_results
from data.shapes.metadata import Background, read_backgrounds
from mcan.precision import choose_dtype
from mcan.prediction import Predictions, predict
from mcan.processes import World, joined_world
from scripts.component_shares import describe_choices, tell_choices
from scripts.entry import command
from scripts.evaluation import Asked, ask, begin, choose_files, load_for, warn_of_training
from scripts.score import format_table
from scripts.trained import Trained
from scripts.validation import name_answers


@command("evaluate")
def main(config: DictConfig) -> None:
    """Evaluate, on as many processes as there are."""
    with joined_world(config.runtime.device, config.runtime.timeout_minutes) as world:
        evaluate(config, world)


def evaluate(config: DictConfig, world: World) -> None:
    """Answer the split; the first process scores, prints and writes."""
    begin(config)
    trained = load_for(config, config.checkpoint, world)
    asked = ask(config, [trained], world, annotated=True, other_images=config.other_images)
    control = "-other-images" if config.other_images else ""
    names = f"{config.split}{control}.json", result_name(config.split, trained.name + control)
    files = choose_files(config, trained, "evaluate", names)
    dtype = choose_dtype(config.runtime.precision, world.device)
    world.wait()
    start = time.monotonic()
    predictions = predict(trained.model, asked.batches(world), world, dtype)
    seconds = time.monotonic() - start
    if not world.is_first:
        return
    answers = name_answers(predictions, trained.words.answers.words)
    scores = score_results(asked.annotations, answers)
    backgrounds = read_backgrounds(asked.folder)
    report = {
        **describe(trained, asked),
        "other_images": bool(config.other_images),
        **describe_accuracy(scores),
        **describe_templates(scores, backgrounds),
        **describe_choices(
            predictions,
            scores.per_question,
            {number: each.num_objects for number, each in backgrounds.items()},
            most(trained, predictions),
        ),
        "precision": str(dtype).removeprefix("torch."),
        "num_processes": world.size,
        "answers_per_second": round(len(answers) / seconds, 1),
    }
    write(files, report, asked, answers)
    if config.other_images:
        print("every question was shown another question's image: what is right is guessed\n")
    print(format_table(scores), tell_templates(report) + tell_choices(report), sep="\n\n")
    print(f"\n{report['answers_per_second']:,} answers a second")
    print(f"written to {files[0]} and, as the server wants it, {files[1]}")


def describe(trained: Trained, asked: Asked) -> dict[str, Any]:
    """What was evaluated on what."""
    return {
        "checkpoint": str(trained.path),
        "run": trained.name,
        "epoch": trained.epoch,
        "attention": trained.options,
        "split": asked.split,
        "data": str(asked.folder.root),
        "trained_on": warn_of_training(trained, asked.split),
        "num_questions": len(asked.questions),
    }


def describe_accuracy(scores: Scores) -> dict[str, Any]:
    """The official accuracies in percent."""
    return {
        "accuracy": scores.overall,
        "accuracy_by_answer_type": scores.per_answer_type,
        "accuracy_by_question_type": scores.per_question_type,
    }


def describe_templates(scores: Scores, backgrounds: dict[int, Background]) -> dict[str, Any]:
    """The accuracy by template, in percent, where the dataset knows templates."""
    groups: dict[str, list[float]] = {}
    for question_id, accuracy in scores.per_question.items():
        if question_id in backgrounds:
            groups.setdefault(backgrounds[question_id].template, []).append(accuracy / 100)
    accuracies = {name: average_percent(group) for name, group in sorted(groups.items())}
    return {"accuracy_by_template": accuracies} if accuracies else {}


def tell_templates(described: dict[str, Any]) -> str:
    """The hardest templates, as lines to print."""
    accuracies = described.get("accuracy_by_template", {})
    hardest = sorted(accuracies, key=lambda name: float(accuracies[name]))[:3]
    named = ", ".join(f"{name} {accuracies[name]:.2f}" for name in hardest)
    return f"hardest templates: {named}\n\n" if named else ""


def most(trained: Trained, predictions: Predictions) -> int:
    """The largest K* there may be."""
    return max(int(trained.options.get("k_max", 1)), int(predictions.num_components.max()))


def write(files: list[Path], report: dict[str, Any], asked: Asked, answers: dict[int, str]) -> None:
    """The report and the result file, which is checked before either gets its name."""
    report_file, result_file = files
    with replacing(result_file) as temporary:
        write_results(temporary, answers.keys(), answers.values())
        source = ", ".join(map(str, asked.folder.question_files(asked.split)))
        check_results(temporary, asked.questions.ids, set(answers.values()), source)
        write_json(report_file, report, indent=1)


if __name__ == "__main__":
    main()
