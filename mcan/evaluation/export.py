"""Result files for the VQA server: of one model or an ensemble, checked before they get names."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote

import numpy as np

from data.io.atomic_files import atomic_write
from data.vqa.data_folder import DataFolder
from data.vqa.results import check_results, write_results
from mcan.evaluation.evaluation_split import EvaluationSplit
from mcan.evaluation.predict import Predictions
from mcan.evaluation.trained_model import TrainedModel, join_names, name_models

NUM_TEST = 447_793  # questions of VQA-v2's test2015, all of which the server wants


def check_ensemble(models: Sequence[TrainedModel]) -> None:
    """Raise when models cannot answer together.

    They must number answers and words alike, and read as many words of a question.
    """
    name_models(models)  # raises where one is named twice: it would count double
    first = models[0]
    for other in models[1:]:
        first.words.check_same(other.words, str(other.path), str(first.path))
        lengths = first.words.question_length, other.words.question_length
        if lengths[0] != lengths[1]:
            raise ValueError(
                f"{first.path} reads {lengths[0]} words of a question and {other.path} "
                f"{lengths[1]}; an ensemble needs models with the same data.question_length"
            )


def name_ensemble(models: Sequence[TrainedModel], name: str | None = None) -> str:
    """What result files are named after: the given name, or the models' runs."""
    if not name:
        return join_names([trained.name for trained in models])
    if "/" in name:
        raise ValueError(f"name is '{name}', but it becomes a part of a file's name: no slash")
    return name


def list_parts(split: EvaluationSplit) -> dict[str, np.ndarray]:
    """The question ids of each file to write: for test also those of test-dev, a part of it."""
    parts = {split.name: split.question_ids}
    if split.name == "test" and split.folder.has_questions("test-dev"):
        parts["test-dev"] = split.folder.read_questions("test-dev").ids
        foreign = np.setdiff1d(parts["test-dev"], parts["test"])
        if len(foreign):
            raise ValueError(
                f"{split.folder.questions('test-dev')} has {len(foreign)} questions, such as "
                f"{foreign[0]}, that {split.folder.questions('test')} does not have; test-dev is a "
                "part of test, so put the two files of one dataset there"
            )
    return parts


def write_result_files(
    files: Mapping[str, Path],
    parts: Mapping[str, np.ndarray],
    predictions: Predictions,
    words: Sequence[str],
    folder: DataFolder,
) -> None:
    """All files or none: each is checked against its question file before it gets its name."""
    ids, answers = predictions.question_ids.numpy(), predictions.answers.numpy()
    listed = frozenset(words)
    with ExitStack() as stack:
        for split, path in files.items():
            temporary = stack.enter_context(atomic_write(path))
            rows = np.flatnonzero(np.isin(ids, parts[split]))
            write_results(
                temporary,
                (int(ids[row]) for row in rows),
                (words[answers[row]] for row in rows),
            )
            source = ", ".join(map(str, folder.question_files(split)))
            check_results(temporary, parts[split], listed, source)


def format_upload(
    files: Mapping[str, Path], parts: Mapping[str, np.ndarray], folder: DataFolder
) -> str:
    """What each file is for."""
    lines = [f"{len(parts[split]):,} answers: {path}" for split, path in files.items()]
    if "test" in files:
        lines.append(
            f"upload {files['test'].name} to the VQA challenge on EvalAI (eval.ai, challenge 830), "
            "for both phases, test-dev and test-standard: each wants every id of test2015"
        )
        if len(parts["test"]) != NUM_TEST:
            lines.append(
                f"notice: these are not the {NUM_TEST:,} questions of VQA-v2, so that server would "
                "reject the file"
            )
    if "test-dev" in files:
        lines.append(
            f"{files['test-dev'].name} is for older servers, which take the test-dev ids alone"
        )
    for split, results in files.items():
        questions, annotations = folder.question_files(split), folder.annotation_files(split)
        if len(questions) == 1 and annotations[0].is_file():  # what make score takes
            inputs = {"questions": questions[0], "annotations": annotations[0], "results": results}
            settings = " ".join(f"{name}={quote(str(path))}" for name, path in inputs.items())
            lines.append(f"score it offline: make score ARGS={quote(settings)}")
    return "\n".join(lines)
