"""make export: result files for the VQA server, checked before they get their names.

python -m scripts.export checkpoint=runs/<name>, or checkpoints=[runs/a,runs/b] for an ensemble
"""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
from omegaconf import DictConfig

from data.files import replacing
from data.questions import Questions
from data.results import check_results, result_name, write_results
from mcan.precision import choose_dtype
from mcan.prediction import Predictions, predict, predict_together
from mcan.processes import World, joined_world
from scripts.entry import command
from scripts.evaluation import (
    Asked,
    ask,
    begin,
    choose_files,
    load_for,
    load_together,
    read_questions,
)
from scripts.settings import require_text
from scripts.trained import Trained

NUM_TEST = 447_793  # questions of VQA-v2's test2015, all of which the server wants


@command("export")
def main(config: DictConfig) -> None:
    """Export, on as many processes as there are."""
    with joined_world(config.runtime.device, config.runtime.timeout_minutes) as world:
        export(config, world)


def export(config: DictConfig, world: World) -> None:
    """Answer the split; the first process writes the files and says where they go."""
    begin(config)
    models = load_models(config, world)
    asked = ask(config, models, world, annotated=False)
    parts = {asked.split: asked.questions, **smaller_part(asked)}
    names = [result_name(split, run_name(config, models)) for split in parts]
    files = dict(zip(parts, choose_files(config, models[0], "export", names), strict=True))
    dtype = choose_dtype(config.runtime.precision, world.device)
    networks = [trained.model for trained in models]
    batches = asked.batches(world)
    if len(networks) == 1:
        predictions = predict(networks[0], batches, world, dtype)
    else:
        predictions = predict_together(networks, batches, world, dtype)
    if world.is_first:
        write(files, parts, predictions, models[0].words.answers.words, asked)
        print(tell_where_to_upload(files, parts))


def load_models(config: DictConfig, world: World) -> list[Trained]:
    """The one model, or those of an ensemble."""
    if bool(config.checkpoint) == bool(config.checkpoints):
        raise ValueError("export needs checkpoint=…, or checkpoints=[…,…] for an ensemble")
    if config.checkpoint:
        return [load_for(config, config.checkpoint, world)]
    models = load_together(config, list(config.checkpoints), world)
    refuse_strangers(models)
    return models


def refuse_strangers(models: list[Trained]) -> None:
    """Raise when models cannot answer together: they must number answers and words alike."""
    first = models[0]
    for other in models[1:]:
        first.words.refuse_other(other.words, str(other.path), str(first.path))


def smaller_part(asked: Asked) -> dict[str, Questions]:
    """The questions of test-dev beside those of test, where the folder has them."""
    if asked.split != "test" or not asked.folder.questions("test-dev").is_file():
        return {}
    questions = read_questions(asked.folder, "test-dev")
    foreign = np.setdiff1d(questions.ids, asked.questions.ids)
    if len(foreign):
        raise ValueError(
            f"{asked.folder.questions('test-dev')} has {len(foreign)} questions, such as "
            f"{foreign[0]}, that {asked.folder.questions('test')} does not have; test-dev is a "
            "part of test, so put the two files of one dataset there"
        )
    return {"test-dev": questions}


def run_name(config: DictConfig, models: list[Trained]) -> str:
    """What the files are named after."""
    if not config.name:
        return "+".join(trained.name for trained in models)
    name = require_text("name", config.name)
    if "/" in name:
        raise ValueError(f"name is '{name}', but it becomes a part of a file's name: no slash")
    return name


def write(
    files: dict[str, Path],
    parts: dict[str, Questions],
    predictions: Predictions,
    words: tuple[str, ...],
    asked: Asked,
) -> None:
    """All files or none: each is checked against its question file before it gets its name."""
    ids, answers = predictions.question_ids.numpy(), predictions.answers.numpy()
    listed = frozenset(words)
    with ExitStack() as stack:
        for split, path in files.items():
            temporary = stack.enter_context(replacing(path))
            rows = np.flatnonzero(np.isin(ids, parts[split].ids))
            write_results(
                temporary,
                (int(ids[row]) for row in rows),
                (words[answers[row]] for row in rows),
            )
            source = ", ".join(map(str, asked.folder.question_files(split)))
            check_results(temporary, parts[split].ids, listed, source)


def tell_where_to_upload(files: dict[str, Path], parts: dict[str, Questions]) -> str:
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
                "refuse the file"
            )
    if "test-dev" in files:
        lines.append(
            f"{files['test-dev'].name} is for older servers, which take the test-dev ids alone"
        )
    if not {"test", "test-dev"} & set(files):
        lines.append('score it offline: make score ARGS="questions=… annotations=… results=…"')
    return "\n".join(lines)


if __name__ == "__main__":
    main()
