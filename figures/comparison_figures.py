"""Figures that compare attention: models side by side, or K = 1 … k_max of one model."""

from collections.abc import Sequence
from pathlib import Path

from data.io.atomic_files import atomic_write
from figures.attention_samples import AttentionSample
from figures.captions import count_answers, describe_prediction, explain_selection, show_number
from figures.drawing.figure import FigureContent, draw_figure, save_figure
from figures.drawing.panel import Panel
from figures.illustrated_split import IllustratedSplit
from mcan.evaluation.single_question import Prediction
from mcan.evaluation.trained_model import TrainedModel


def compare_heads(
    split: IllustratedSplit,
    names: Sequence[str],
    samples: Sequence[AttentionSample],
    smooth: bool = False,
) -> FigureContent:
    """One question: the image, every model's attention and, where there is a map, human attention.

    `smooth` draws discrete attention without the borders of its cells.
    """
    question_id = samples[0].question_id
    panels = [Panel("image")]
    for name, sample in zip(names, samples, strict=True):
        notes = describe_accuracy(split, question_id, sample.prediction)
        divergence = split.divergence(sample)
        if divergence is not None:
            notes.append(f"JS divergence {divergence:.2f} bits")
        title = f"{name}, K* = {sample.num_components}" if sample.candidates else name
        attended = sample.cells, sample.mixture, tuple(notes)
        panels.append(Panel(title, *attended, smooth=smooth, boxes=sample.boxes))
    human = split.human_map(question_id)
    if human is not None:
        note = f"mean of {human.num_people} maps"
        panels.append(Panel("human", human.cells, notes=(note,), smooth=True))
    return make_content(split, question_id, panels)


def compare_components(
    split: IllustratedSplit, trained: TrainedModel, sample: AttentionSample
) -> FigureContent:
    """One question and one model: K = 1 … k_max side by side, the selected K* marked."""
    panels = [Panel("image")]
    for k, candidate in enumerate(sample.candidates, 1):
        is_selected = k == sample.num_components
        notes = [
            *describe_accuracy(split, sample.question_id, candidate.prediction),
            f"log-likelihood {show_number(candidate.log_likelihood)}",
            f"C({k}) = {show_number(candidate.description_length)}",
        ]
        title = f"K* = {k}" if is_selected else f"K = {k}"
        panels.append(Panel(title, None, candidate.mixture, tuple(notes), is_selected))
    explained = f"{trained.head_name}: {explain_selection(trained.options)}"
    return make_content(split, sample.question_id, panels, explained)


def make_content(
    split: IllustratedSplit, question_id: int, panels: Sequence[Panel], *caption: str
) -> FigureContent:
    """The panels with the photo, the question, and what people answered."""
    row = split.row(question_id)
    image_id = int(split.questions.image_ids[row])
    annotation = split.annotations.get(question_id)
    if annotation is not None:
        caption = (f"People answered: {count_answers(annotation.answers)}", *caption)
    return FigureContent(
        split.photo(image_id),
        split.questions.texts[row],
        tuple(panels),
        caption,
        f"question {question_id}, image {image_id} of {split.name}",
    )


def describe_accuracy(
    split: IllustratedSplit, question_id: int, prediction: Prediction
) -> list[str]:
    """The answer, its probability, and its official accuracy where the split has annotations."""
    accuracy = split.accuracy(question_id, prediction.answer)
    notes = [] if accuracy is None else [f"accuracy {100 * accuracy:.0f} %"]
    return [describe_prediction(prediction), *notes]


def write_figure(content: FigureContent, paths: Sequence[Path], dpi: int) -> None:
    """Draw a figure into *.png and *.pdf files, each whole or not at all."""
    figure = draw_figure(content)
    for path in paths:
        with atomic_write(path) as temporary:
            save_figure(figure, temporary, path.suffix[1:].lower(), dpi)
