"""From what models saw to the cards of a gallery."""

from collections.abc import Sequence

from figures.page import Card, Choice, Measure, Page, Photo, embed_photo
from scripts.album import RIGHT, Album
from scripts.choice import mean_divergence
from scripts.looks import Look
from scripts.sheets import Style, compare_heads

STYLE = Style()


def make_page(
    album: Album, names: Sequence[str], looks: Sequence[Sequence[Look]], side: int
) -> Page:
    """Every question as a card; photos have at most `side` pixels a side."""
    cards: list[Card] = []
    photos: dict[int, Photo] = {}
    for of_question in zip(*looks, strict=True):
        question_id = of_question[0].question_id
        sheet = compare_heads(album, names, of_question, STYLE)
        image_id = int(album.questions.image_ids[album.row(question_id)])
        if image_id not in photos:
            photos[image_id] = embed_photo(sheet.photo, side)
        values = measure_looks(album, of_question)
        people = " ".join([*sheet.caption, f"({sheet.footer})"])
        cards.append(Card(question_id, image_id, sheet.heading, sheet.panels, people, values))
    return Page(
        f"Attention to {len(cards)} questions",
        f"{', '.join(names)} on {album.split} of {album.folder.root}",
        cards,
        photos,
        list_choices(names, cards),
        list_measures(names, cards),
    )


def measure_looks(album: Album, looks: Sequence[Look]) -> dict[str, str | float]:
    """What a question is filtered and sorted by; a key's number is the model's."""
    question_id = looks[0].question_id
    values: dict[str, str | float] = {"question": question_id}
    annotation = album.annotations.get(question_id)
    if annotation is not None:
        values["type"] = annotation.answer_type
    if len(looks) > 1:
        values["apart"] = round(mean_divergence(looks), 4)
    for number, look in enumerate(looks):
        values[f"probability{number}"] = round(look.guess.probability, 4)
        if look.candidates:
            values[f"components{number}"] = look.num_components
        accuracy = album.accuracy(question_id, look.guess.answer)
        if accuracy is not None:
            values[f"accuracy{number}"] = round(accuracy, 4)
            values[f"right{number}"] = "right" if accuracy >= RIGHT else "wrong"
        divergence = album.divergence(look)
        if divergence is not None:
            values[f"human{number}"] = round(divergence, 4)
    return values


def list_choices(names: Sequence[str], cards: Sequence[Card]) -> list[Choice]:
    """The filters by a value, each with the values that there are."""
    labels = {"type": "answer type"}
    for number, name in enumerate(names):
        labels[f"right{number}"] = f"{name} is"
        labels[f"components{number}"] = f"K* of {name}"
    choices = []
    for key, label in labels.items():
        options = sorted({str(card.values[key]) for card in cards if key in card.values})
        if options:
            choices.append(Choice(key, label, tuple(options)))
    return choices


def list_measures(names: Sequence[str], cards: Sequence[Card]) -> list[Measure]:
    """The numbers to sort by that some card has."""
    labels = {"apart": "divergence between models"}
    for number, name in enumerate(names):
        labels[f"human{number}"] = f"{name}: divergence from people"
    for number, name in enumerate(names):
        labels[f"components{number}"] = f"{name}: K*"
        labels[f"probability{number}"] = f"{name}: probability"
        labels[f"accuracy{number}"] = f"{name}: accuracy"
    labels["question"] = "question id"
    return [
        Measure(key, label)
        for key, label in labels.items()
        if any(key in card.values for card in cards)
    ]
