"""The model card of a released model: what it is, what was measured, how to use it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from mcan.evaluation.trained_model import TrainedModel
from mcan.release.released_model import Measurement

CARD = """\
# {name}

A model for visual question answering: MCAN with {head} attention over the {unit}s of an image.
`{file}` holds its weights, vocabulary, answers and settings. It was trained and is used with
*continuous-visual-attention*, an implementation of arXiv 2104.03046.

## What it is

| | |
|---|---|
{facts}

## Measured

{numbers}

## Use

```
{commands}
```

In Python:

```python
from mcan.evaluation.trained_model import load_trained

trained = load_trained({file!r})  # trained.model, trained.words, trained.options
```
{notes}"""
NOT_RECORDED = "not recorded"


def write_card(
    trained: TrainedModel,
    content: Mapping[str, Any],
    measurements: Sequence[Measurement],
    released: Path,
) -> str:
    """The card in Markdown of the file `released`, wherever that will be."""
    return CARD.format(
        name=released.stem,
        head=trained.head_name,
        unit=trained.manifest.unit,
        file=released.name,
        facts="\n".join(f"| {name} | {value} |" for name, value in list_facts(trained, content)),
        numbers=format_measurements(measurements),
        commands="\n".join(list_commands(trained, quote(released.name))),
        notes="".join(f"\n{note}\n" for note in list_notes(trained)),
    )


def list_facts(trained: TrainedModel, content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What it was trained on, and how."""
    config, sizes, options = trained.config, trained.model.sizes, dict(trained.options)
    num_parameters = sum(weight.numel() for weight in content["model"].values())
    head = options.pop("name")
    named = ", ".join(f"{key}={value}" for key, value in options.items())
    return [
        ("trained on", f"{config['data']['name']}, split {trained.train_split}"),
        ("features", describe_features(trained)),
        ("network", f"{sizes.num_layers} layers of {sizes.hidden}, {num_parameters:,} parameters"),
        ("words", f"{sizes.num_words} of questions, {sizes.num_answers} answers"),
        ("attention", f"{head}: {named}"),
        ("training", describe_training(trained)),
        ("code", f"commit {content.get('commit', NOT_RECORDED)}"),
    ]


def describe_features(trained: TrainedModel) -> str:
    """Which features of an image the model takes."""
    manifest = trained.manifest
    stride = f", stride {manifest.stride}" if manifest.is_grid else ""
    return f"{manifest.describe()}{stride}"


def describe_training(trained: TrainedModel) -> str:
    """How long it was trained, from what, and whether on all of the data."""
    config = trained.config
    if "imported_from" in config:
        return f"imported from {Path(config['imported_from']).name}"
    optim, limit = config["optim"], config.get("runtime", {}).get("limit_batches")
    parts = [
        f"epoch {trained.epoch} of {optim['epochs']}",
        f"batches of {optim['batch_size']}",
        f"seed {config['seed']}",
    ]
    if config.get("init_from"):
        parts.append(f"initial weights of {config['init_from']}")
    if limit is not None:
        parts.append(f"**not on all of the data: {limit} batches per epoch**")
    return ", ".join(parts)


def format_measurements(measurements: Sequence[Measurement]) -> str:
    """A table of accuracies, with the split and how many questions each is over."""
    if not measurements:
        return "Nothing was measured with this checkpoint: `make evaluate` does."
    types = sorted({name for each in measurements for name in each.by_answer_type})
    header = ["split", "questions", "accuracy", *types, "measured by"]
    rows = [header, ["---"] * len(header)]
    for each in measurements:
        accuracies = [each.overall, *(each.by_answer_type.get(name) for name in types)]
        shown = ["–" if value is None else f"{value:.2f}" for value in accuracies]
        number = NOT_RECORDED if each.num_questions is None else f"{each.num_questions:,}"
        rows.append([each.split, number, *shown, each.source])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"The official VQA accuracy in percent, overall and by answer type:\n\n{table}"


def list_commands(trained: TrainedModel, file: str) -> list[str]:
    """What can be run with it; a new image has no regions, which a detector finds."""
    new_images = [
        f'make ask CHECKPOINT={file} IMAGE=photo.jpg QUESTION="…"',
        f"make demo CHECKPOINT={file}",
    ]
    return [
        f'make evaluate CHECKPOINT={file} ARGS="data.root=<folder> split=val"',
        f'make export CHECKPOINT={file} ARGS="data.root=<folder>"',
        f'make figures CHECKPOINTS={file} ARGS="data.root=<folder>"',
        *(new_images if trained.manifest.is_grid else []),
        f'make train ARGS="init_from={file} name=fine-tuned …"',
    ]


def list_notes(trained: TrainedModel) -> list[str]:
    """What else the commands need."""
    modules = trained.config.get("modules")
    if not modules:
        return []
    return [f"It was trained with modules=[{','.join(modules)}], which the commands need too."]
