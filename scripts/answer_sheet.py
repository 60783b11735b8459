"""The figure of one picture and one question: the photo, the attention, the answers."""

from dataclasses import replace

from figures.panel import Panel
from figures.sheet import Sheet
from scripts.asking import Seen, View
from scripts.looks import Guess
from scripts.sheets import explain_selection, name_answer, show_percent


def make_sheet(seen: Seen, view: View) -> Sheet:
    """The photo beside the attention over it; the answers below."""
    panels = (Panel("image"), Panel(name_view(seen, view), view.cells, view.mixture))
    caption = ["Answers: " + "; ".join(map(show_guess, view.answers)), *seen.notices]
    if view.lengths:
        caption.append(explain_view(seen, view))
    return Sheet(seen.photo, seen.question, panels, tuple(caption), seen.trained.name)


def name_view(seen: Seen, view: View) -> str:
    """The head, and K: K* where λ chose it."""
    head = str(seen.trained.options["name"])
    if not view.lengths:
        return head
    return f"{head}, K{'' if view.is_fixed else '*'} = {view.num_components}"


def explain_view(seen: Seen, view: View) -> str:
    """Why K is what it is, under the λ in force."""
    if view.is_fixed:
        return f"K = {view.num_components} is given, not chosen."
    options = {**seen.trained.options, "lam": view.lam}
    return explain_selection(replace(seen.trained, options=options))


def show_guess(guess: Guess) -> str:
    """An answer and its probability."""
    return f"{name_answer(guess.answer)}, {show_percent(guess.probability)}"
