"""A view as HTML: the attention over the photo, the answers as bars, and why K was chosen."""

import base64
import html
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from figures.heat import blend
from figures.overlay import draw_overlay
from figures.panel import Panel
from scripts.answer_sheet import explain_view, name_view
from scripts.asking import Seen, View
from scripts.sheets import name_answer, show_number, show_percent

QUALITY = 88  # of JPEG: drawn anew whenever λ moves, so it must be quick

# Every text that a user or a data file can give is escaped.


def write_picture(seen: Seen, view: View, photo: np.ndarray) -> str:
    """The heat over a photo (H, W, 3) uint8, and the mixture over that."""
    title = name_view(seen, view)
    height, width = photo.shape[:2]
    heat = Panel(title, view.cells, view.mixture).heat(height, width)
    assert heat is not None
    overlay = "" if view.mixture is None else draw_overlay(view.mixture, width, height)
    alt = html.escape(f"{title}: where the model looks to answer “{seen.question}”")
    return (
        f'<figure class="seen"><figcaption><b>{html.escape(seen.question)}</b> '
        f"{html.escape(title)}</figcaption>"
        f'<div class="frame" style="aspect-ratio:{width}/{height};'
        f'max-width:calc(min(1,{width}/{height})*var(--tallest))">'
        f'<img src="{embed_picture(blend(photo, heat))}" alt="{alt}">{overlay}</div></figure>'
    )


def embed_picture(pixels: np.ndarray) -> str:
    """A picture (H, W, 3) uint8 as a data URI."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def write_answers(seen: Seen, view: View) -> str:
    """The likeliest answers as bars, and C(k) of every k where λ chooses."""
    rows = "".join(
        f"<tr><th>{html.escape(name_answer(guess.answer))}</th>"
        f'<td class="bar"><i style="width:{100 * guess.probability:.2f}%"></i></td>'
        f"<td>{html.escape(show_percent(guess.probability))}</td></tr>"
        for guess in view.answers
    )
    notices = "".join(f"<p>{html.escape(notice)}</p>" for notice in seen.notices)
    return f'<table class="answers">{rows}</table>{notices}{write_lengths(seen, view)}'


def write_lengths(seen: Seen, view: View) -> str:
    """A column for each k: its log-likelihood and its C(k); the K in use is marked."""
    if not view.lengths or seen.attended.candidates is None:
        return ""
    likelihoods = seen.attended.candidates.log_likelihood[0].tolist()
    lines: list[tuple[str, Sequence[str]]] = [
        ("K", [str(k) for k in range(1, len(view.lengths) + 1)]),
        ("log-likelihood", [show_number(value) for value in likelihoods]),
        ("C(K)", [show_number(value) for value in view.lengths]),
    ]
    body = "".join(
        f"<tr><th>{name}</th>"
        + "".join(
            f"<td{' class=chosen' if k == view.num_components else ''}>{text}</td>"
            for k, text in enumerate(texts, 1)
        )
        + "</tr>"
        for name, texts in lines
    )
    return f'<table class="lengths">{body}</table><p>{explain_view(seen, view)}</p>'


def write_message(text: str) -> str:
    """A sentence for the user, read aloud where a page is; empty for none."""
    return f'<p class="message" role="alert">{html.escape(text)}</p>' if text else ""
