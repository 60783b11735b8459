"""A page of many questions to leaf through: one HTML file that needs nothing else."""

import base64
import hashlib
import html
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from figures.heat import BRIGHTNESS, shade, to_scale
from figures.overlay import draw_overlay
from figures.panel import Panel

HEAT_SIDE = 128  # pixels of the longer side of a density: smooth, so the browser may enlarge it
MARK = '<meta name="generator" content="attention gallery">'  # in every page of this kind
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Choice:
    """A filter that keeps the questions with one of a few values."""

    key: str
    label: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Measure:
    """A number to sort by, and to filter by its bounds."""

    key: str
    label: str


@dataclass(frozen=True)
class Photo:
    """A small picture, embedded once for all the panels that show it."""

    width: int
    height: int
    uri: str


@dataclass(frozen=True)
class Card:
    """One question with its panels; `values` holds what it is filtered and sorted by."""

    question_id: int
    image_id: int
    question: str
    panels: tuple[Panel, ...]
    people: str
    values: dict[str, str | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """All that a page holds; photos by image id."""

    title: str
    subtitle: str
    cards: Sequence[Card]
    photos: dict[int, Photo]
    choices: Sequence[Choice]
    measures: Sequence[Measure]


def write_page(page: Page) -> str:
    """The page as HTML. Every text of it is escaped; a browser runs no script but its own."""
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = fill(
        "page.css",
        brightness=f"{BRIGHTNESS}",
        views=str(max((len(card.panels) for card in page.cards), default=1)),
    )
    return fill(
        "page.html",
        hash=f"sha256-{digest}",
        title=html.escape(page.title),
        subtitle=html.escape(page.subtitle),
        scale=embed(shade(np.linspace(0, 1, 128))[None], lossless=True),
        style=style,
        photos="".join(
            f".p{image_id}{{background-image:url({photo.uri})}}"
            for image_id, photo in page.photos.items()
        ),
        filters=write_filters(page.choices, page.measures),
        cards="\n".join(write_card(card, page.photos[card.image_id]) for card in page.cards),
        script=script,
    )


def fill(name: str, **parts: str) -> str:
    """A file of this package with {{name}} replaced, once: what is put in is not looked at."""
    text = (HERE / name).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], text)


def write_filters(choices: Sequence[Choice], measures: Sequence[Measure]) -> str:
    """The form: a select for each choice, bounds for a measure, the order, a word to look for."""
    selects = [
        f'<label>{html.escape(choice.label)}<select name="{html.escape(choice.key)}" '
        f'data-key="{html.escape(choice.key)}"><option value="">any</option>'
        + "".join(f"<option>{html.escape(option)}</option>" for option in choice.options)
        + "</select></label>"
        for choice in choices
    ]
    options = "".join(
        f'<option value="{html.escape(measure.key)}">{html.escape(measure.label)}</option>'
        for measure in measures
    )
    return "".join(
        [
            '<label>words<input type="search" name="words" autocomplete="off"></label>',
            *selects,
            f'<label>bounds of<select name="measure">{options}</select></label>',
            '<label>at least<input type="number" step="any" name="least"></label>',
            '<label>at most<input type="number" step="any" name="most"></label>',
            f'<label>sort by<select name="sort"><option value="">as chosen</option>{options}'
            "</select></label>",
            '<label>order<select name="order"><option value="up">ascending</option>'
            '<option value="down">descending</option></select></label>',
            '<button type="reset">reset</button>',
        ]
    )


def write_card(card: Card, photo: Photo) -> str:
    """One question."""
    question = html.escape(card.question)
    values = html.escape(json.dumps(card.values, ensure_ascii=True))
    views = "".join(write_view(panel, card, photo) for panel in card.panels)
    return (
        f'<article id="q{card.question_id}" data-values="{values}">'
        f'<h2><button type="button" aria-haspopup="dialog">{question}</button></h2>'
        f'<div class="views">{views}</div>'
        f'<p class="people">{html.escape(card.people)}</p></article>'
    )


def write_view(panel: Panel, card: Card, photo: Photo) -> str:
    """One panel: the photo, the heat over it, the mixture over that, and the notes."""
    dimmed, heat, overlay = "", "", ""
    if panel.cells is not None or panel.mixture is not None:
        alt = html.escape(f"{panel.title}: where it looks to answer “{card.question}”")
        is_sharp = panel.mixture is None and not panel.smooth
        dimmed = " dimmed"
        kind = ' class="cells"' if is_sharp else ""
        heat = f'<img{kind} src="{draw_heat(panel, photo)}" alt="{alt}">'
        if panel.mixture is not None:
            overlay = draw_overlay(panel.mixture, photo.width, photo.height)
    label = "" if heat else f' role="img" aria-label="{html.escape(f"photo: {card.question}")}"'
    notes = "<br>".join(map(html.escape, panel.notes))
    return (
        f'<figure><div class="frame" style="aspect-ratio:{photo.width}/{photo.height};'
        f'max-width:calc(min(1,{photo.width}/{photo.height})*100%)">'
        f'<div class="photo p{card.image_id}{dimmed}"{label}></div>{heat}{overlay}</div>'
        f"<figcaption><b>{html.escape(panel.title)}</b>{notes}</figcaption></figure>"
    )


def draw_heat(panel: Panel, photo: Photo) -> str:
    """The heat alone as a small picture with opacity: a pixel a cell, or a smooth density."""
    if panel.mixture is None and not panel.smooth:
        assert panel.cells is not None
        return embed(shade(to_scale(panel.cells)), lossless=True)
    scale = HEAT_SIDE / max(photo.width, photo.height)
    height, width = (max(1, round(side * scale)) for side in (photo.height, photo.width))
    heat = panel.heat(height, width)
    assert heat is not None
    return embed(shade(to_scale(heat)), lossless=False)


def embed(shaded: np.ndarray, lossless: bool) -> str:
    """A picture (h, w, 4) in [0, 1] as a data URI."""
    picture = Image.fromarray(np.round(255 * shaded).astype(np.uint8), "RGBA")
    return encode(picture, lossless=lossless, quality=80)


def embed_photo(photo: np.ndarray, side: int) -> Photo:
    """A photo (H, W, 3) uint8, made small enough to embed."""
    picture = Image.fromarray(photo)
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    return Photo(picture.width, picture.height, encode(picture, lossless=False, quality=60))


def encode(picture: Image.Image, lossless: bool, quality: int) -> str:
    """A picture as a WebP data URI."""
    file = io.BytesIO()
    picture.save(file, "WEBP", lossless=lossless, quality=quality, method=4)
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
