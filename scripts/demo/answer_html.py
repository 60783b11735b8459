"""An answer as HTML: the attention over the photo, the answers as bars, and how K was selected."""

import html

import numpy as np
from PIL import Image

from figures.answer_figure import attention_panel, explain_answer
from figures.captions import name_answer, show_number, show_percent
from figures.drawing.heat import blend
from figures.drawing.html_parts import draw_overlay, embed_picture, write_frame
from mcan.evaluation.single_question import Answer, ForwardPass

QUALITY = 88  # of JPEG: drawn again whenever λ moves, so it must be quick

# Every text that a user or a data file can give is escaped.


def write_attention(forward: ForwardPass, answer: Answer, photo: np.ndarray) -> str:
    """The heat over a photo (H, W, 3) uint8, and the mixture over that."""
    panel = attention_panel(forward, answer)
    height, width = photo.shape[:2]
    heat = panel.heat(height, width)
    assert heat is not None
    overlay = "" if panel.mixture is None else draw_overlay(panel.mixture, width, height)
    picture = embed_picture(Image.fromarray(blend(photo, heat)), "jpeg", quality=QUALITY)
    alt = html.escape(f"{panel.title}: attention for “{forward.question}”")
    shown = f'<img src="{picture}" alt="{alt}">{overlay}'
    return (
        f'<figure class="attention"><figcaption><b>{html.escape(forward.question)}</b> '
        f"{html.escape(panel.title)}</figcaption>"
        f"{write_frame(shown, width, height, 'var(--tallest)')}</figure>"
    )


def write_answers(forward: ForwardPass, answer: Answer) -> str:
    """The likeliest answers as bars, and C(k) of every k where λ selects K."""
    rows = "".join(
        f"<tr><th>{html.escape(name_answer(prediction.answer))}</th>"
        f'<td class="bar"><i style="width:{100 * prediction.probability:.2f}%"></i></td>'
        f"<td>{html.escape(show_percent(prediction.probability))}</td></tr>"
        for prediction in answer.predictions
    )
    notices = "".join(f"<p>{html.escape(notice)}</p>" for notice in forward.notices)
    return f'<table class="answers">{rows}</table>{notices}{write_selection(forward, answer)}'


def write_selection(forward: ForwardPass, answer: Answer) -> str:
    """A column for each k: its log-likelihood and its C(k); the K in use is marked."""
    if not answer.description_lengths or forward.attended.candidates is None:
        return ""
    likelihoods = forward.attended.candidates.log_likelihood[0].tolist()
    lines = {
        "K": [str(k) for k in range(1, len(likelihoods) + 1)],
        "log-likelihood": map(show_number, likelihoods),
        "C(K)": map(show_number, answer.description_lengths),
    }
    body = ""
    for name, texts in lines.items():
        cells = "".join(
            f"<td{' class=selected' if k == answer.num_components else ''}>{text}</td>"
            for k, text in enumerate(texts, 1)
        )
        body += f"<tr><th>{name}</th>{cells}</tr>"
    return f'<table class="selection">{body}</table><p>{explain_answer(forward, answer)}</p>'


def write_message(text: str) -> str:
    """A sentence for the user, announced by screen readers; empty for none."""
    return f'<p class="message" role="alert">{html.escape(text)}</p>' if text else ""
