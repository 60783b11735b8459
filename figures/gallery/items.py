"""From attention samples to the items of a gallery."""

from collections.abc import Sequence

from figures.attention_samples import AttentionSample
from figures.comparison_figures import compare_heads
from figures.gallery.page import Item, Page, Photo, embed_photo
from figures.illustrated_split import CORRECT, IllustratedSplit
from figures.question_selection import mean_divergence


def make_page(
    split: IllustratedSplit,
    names: Sequence[str],
    samples: Sequence[Sequence[AttentionSample]],
    side: int,
) -> Page:
    """An item per question from every model's samples; images have at most `side` pixels a side."""
    items: list[Item] = []
    photos: dict[int, Photo] = {}
    for of_question in zip(*samples, strict=True):
        question_id = of_question[0].question_id
        figure = compare_heads(split, names, of_question)
        image_id = int(split.questions.image_ids[split.row(question_id)])
        if image_id not in photos:
            photos[image_id] = embed_photo(figure.photo, side)
        values = measure_samples(split, of_question)
        people = " ".join([*figure.caption, f"({figure.footer})"])
        items.append(Item(question_id, image_id, figure.heading, figure.panels, people, values))
    present = {key for item in items for key in item.values}
    filters, measures = name_values(names)
    return Page(
        f"Attention to {len(items)} questions",
        f"{', '.join(names)} on {split.name} of {split.folder.root}",
        items,
        photos,
        {key: label for key, label in filters.items() if key in present},
        {key: label for key, label in measures.items() if key in present},
    )


def measure_samples(
    split: IllustratedSplit, samples: Sequence[AttentionSample]
) -> dict[str, str | float]:
    """What a question is filtered and sorted by; the number in a key is the model's."""
    question_id = samples[0].question_id
    values: dict[str, str | float] = {"question": question_id}
    annotation = split.annotations.get(question_id)
    if annotation is not None:
        values["type"] = annotation.answer_type
    if len(samples) > 1:
        values["divergence"] = round(mean_divergence(samples), 4)
    for number, sample in enumerate(samples):
        values[f"probability{number}"] = round(sample.prediction.probability, 4)
        if sample.candidates:
            values[f"components{number}"] = sample.num_components
        accuracy = split.accuracy(question_id, sample.prediction.answer)
        if accuracy is not None:
            values[f"accuracy{number}"] = round(accuracy, 4)
            values[f"correct{number}"] = "correct" if accuracy >= CORRECT else "wrong"
        divergence = split.divergence(sample)
        if divergence is not None:
            values[f"human{number}"] = round(divergence, 4)
    return values


def name_values(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The labels of the values to filter by, and of those to sort by."""
    filters, measures = (
        {"type": "answer type"},
        {"divergence": "divergence between models, in bits"},
    )
    for number, name in enumerate(names):
        filters[f"correct{number}"] = f"{name} is"
        filters[f"components{number}"] = f"K* of {name}"
        measures[f"human{number}"] = f"{name}: divergence from people, in bits"
    for number, name in enumerate(names):
        measures[f"components{number}"] = f"{name}: K*"
        measures[f"probability{number}"] = f"{name}: probability"
        measures[f"accuracy{number}"] = f"{name}: accuracy"
    return filters, {**measures, "question": "question id"}
