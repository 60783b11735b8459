"""make score: the official accuracy of a result file, offline."""

from pathlib import Path

from configs.schema.files import Score
from data.io.atomic_files import check_output_file, write_json
from data.vqa.accuracy import Scores, score_results
from data.vqa.questions import load_annotations, load_questions, match_annotations
from data.vqa.results import check_ids, load_results
from scripts.cli.command import command


@command("score")
def main(settings: Score) -> None:
    """Read, check, score, write, print."""
    if settings.output:
        check_output_file(Path(settings.output))
        check_output_is_not_an_input(settings.output, settings)
    questions = load_questions([settings.questions])
    results = load_results(settings.results)
    check_ids(results, questions.ids.tolist(), settings.results)
    annotations = load_annotations([settings.annotations])
    match_annotations(questions, annotations)
    scores = score_results(annotations, results)
    if settings.output:
        write_json(settings.output, scores.to_json())
    print(format_table(scores))


def check_output_is_not_an_input(output: str, settings: Score) -> None:
    """Raise when the scores would take the place of a file they are computed from."""
    for name in ("questions", "annotations", "results"):
        if Path(output).resolve() == Path(getattr(settings, name)).resolve():
            raise ValueError(f"output is {output}, the same file as {name}; name another one")


def format_table(scores: Scores) -> str:
    """The scores as lines: overall, by answer type, by question type."""
    groups = [
        ("answer type", scores.per_answer_type, scores.num_per_answer_type),
        ("question type", scores.per_question_type, scores.num_per_question_type),
    ]
    names = ["overall", *scores.per_answer_type, *scores.per_question_type]
    width = max(len("question type"), *map(len, names))
    lines = [f"{'':{width}}  accuracy  questions"]
    lines.append(f"{'overall':{width}}  {scores.overall:8.2f}  {len(scores.per_question):9,}")
    for title, accuracies, counts in groups:
        lines += ["", title]
        lines += [
            f"{name:{width}}  {accuracies[name]:8.2f}  {counts[name]:9,}"
            for name in sorted(accuracies)
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
