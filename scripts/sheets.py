"""From what models saw to the figures that show it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from data.files import replacing
from figures.panel import Panel
from figures.sheet import Sheet, draw_sheet, save_figure
from scripts.album import Album
from scripts.looks import Guess, Look
from scripts.trained import Trained


@dataclass(frozen=True)
class Style:
    """How figures are drawn and written."""

    formats: tuple[str, ...] = ("png", "pdf")
    dpi: int = 200
    smooth: bool = False  # discrete attention without the borders of its cells


def compare_heads(album: Album, names: Sequence[str], looks: Sequence[Look], style: Style) -> Sheet:
    """One question: the photo, every model's attention and, where there is a map, people's."""
    panels = [Panel("image")]
    for name, look in zip(names, looks, strict=True):
        notes = [*describe_guess(album, look.question_id, look.guess)]
        divergence = album.divergence(look)
        if divergence is not None:
            notes.append(f"JS divergence {divergence:.2f}")
        title = f"{name}, K* = {look.num_components}" if look.candidates else name
        panels.append(Panel(title, look.cells, look.mixture, tuple(notes), smooth=style.smooth))
    people = album.human_map(looks[0].question_id)
    if people is not None:
        notes = [f"mean of {people.num_people} maps"]
        panels.append(Panel("human", people.cells, notes=tuple(notes), smooth=True))
    return make_sheet(album, looks[0].question_id, panels, ())


def compare_components(album: Album, trained: Trained, look: Look) -> Sheet:
    """One question and one model: K = 1 … k_max side by side, the chosen K* marked."""
    panels = [Panel("image")]
    for k, candidate in enumerate(look.candidates, 1):
        is_chosen = k == look.num_components
        notes = [
            *describe_guess(album, look.question_id, candidate.guess),
            f"log-likelihood {show_number(candidate.log_likelihood)}",
            f"C({k}) = {show_number(candidate.description_length)}",
        ]
        title = f"K* = {k}" if is_chosen else f"K = {k}"
        panels.append(Panel(title, None, candidate.mixture, tuple(notes), is_chosen))
    return make_sheet(album, look.question_id, panels, (explain_selection(trained),))


def explain_selection(trained: Trained) -> str:
    """What C(k) is under the options in force."""
    lam = trained.options.get("lam", 0)
    charged = "k" if trained.options.get("penalty", "components") == "components" else "parameters"
    return f"C(k) = −2 · log-likelihood + {lam:g} · {charged}; the least is chosen."


def make_sheet(
    album: Album, question_id: int, panels: Sequence[Panel], caption: tuple[str, ...]
) -> Sheet:
    """The panels with the photo, the question, and what people answered."""
    row = album.row(question_id)
    image_id = int(album.questions.image_ids[row])
    annotation = album.annotations.get(question_id)
    if annotation is not None:
        caption = (f"People answered: {count_answers(annotation.answers)}", *caption)
    return Sheet(
        album.photo(image_id),
        album.questions.texts[row],
        tuple(panels),
        caption,
        f"question {question_id}, image {image_id} of {album.split}",
    )


def describe_guess(album: Album, question_id: int, guess: Guess) -> tuple[str, ...]:
    """The answer, its probability, and how many points the official metric gives for it."""
    line = f"{name_answer(guess.answer)}, {show_percent(guess.probability)}"
    accuracy = album.accuracy(question_id, guess.answer)
    return (line,) if accuracy is None else (line, f"accuracy {100 * accuracy:.0f} %")


def name_answer(answer: str) -> str:
    """An answer as it is shown; the one that normalising leaves nothing of needs a word."""
    return answer or "(empty answer)"


def show_percent(probability: float) -> str:
    """A probability in whole percent, never rounded to certainty."""
    percent = round(100 * probability)
    if percent == 100 and probability < 1:
        return "> 99 %"
    return f"{percent} %" if percent or not probability else "< 1 %"


def show_number(value: float) -> str:
    """Two digits, with a minus sign and not a hyphen."""
    return f"{value:.2f}".replace("-", "−")


def count_answers(answers: Sequence[str]) -> str:
    """Distinct answers, most frequent first, each with how many people gave it."""
    counted = Counter(answers).most_common()
    return ", ".join(f"{name_answer(answer)} ({count})" for answer, count in counted)


def write_sheet(sheet: Sheet, stem: Path, style: Style) -> list[Path]:
    """Draw a figure and write <stem>.png and <stem>.pdf, each whole or not at all."""
    figure = draw_sheet(sheet)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in style.formats]
    for path, kind in zip(paths, style.formats, strict=True):
        with replacing(path) as temporary:
            save_figure(figure, temporary, kind, style.dpi)
    return paths
