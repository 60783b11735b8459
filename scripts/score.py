"""Score a result file offline: python -m scripts.score questions=… annotations=… results=…"""

from pathlib import Path

from omegaconf import DictConfig

from data.accuracy import Scores, score_results
from data.files import write_json
from data.questions import load_annotations, load_questions, match_annotations
from data.results import check_ids, load_results
from scripts.entry import command
from scripts.settings import require_text


@command("score")
def main(config: DictConfig) -> None:
    """Read, check, score, write, print."""
    if config.output:
        refuse_input(require_text("output", config.output), config)
    questions = load_questions([config.questions])
    results = load_results(config.results)
    check_ids(results, questions.ids.tolist(), config.results)
    annotations = load_annotations([config.annotations])
    match_annotations(questions, annotations)
    scores = score_results(annotations, results)
    if config.output:
        write_json(config.output, scores.to_json())
    print(format_table(scores))


def refuse_input(output: str, config: DictConfig) -> None:
    """Raise when the scores would take the place of a file they are computed from."""
    for name in ("questions", "annotations", "results"):
        if Path(output).resolve() == Path(config[name]).resolve():
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
