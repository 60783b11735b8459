"""A gallery page of many questions: one HTML file that needs nothing else."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from figures.drawing.heat import BRIGHTNESS, shade, to_scale
from figures.drawing.html_parts import draw_boxes, draw_overlay, embed_picture, write_frame
from figures.drawing.panel import Panel

HEAT_SIDE = 128  # pixels of the longer side of a density: smooth, so the browser may enlarge it
GENERATOR = '<meta name="generator" content="attention gallery">'  # in every gallery page
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Photo:
    """A small picture, embedded once for all the panels that show it."""

    width: int
    height: int
    uri: str


@dataclass(frozen=True)
class Item:
    """One question with its panels; `values` holds what it is filtered and sorted by."""

    question_id: int
    image_id: int
    question: str
    panels: tuple[Panel, ...]
    people: str  # what people answered
    values: dict[str, str | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """All that a page holds; photos by image id.

    Items are filtered by the values of `filters`, and sorted and bounded by those of `measures`:
    each has the keys of values that some item has, and how they are labelled.
    """

    title: str
    subtitle: str
    items: Sequence[Item]
    photos: dict[int, Photo]
    filters: dict[str, str]
    measures: dict[str, str]


def write_page(page: Page) -> str:
    """The page as HTML. All text is escaped; a browser runs no script but the page's own."""
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return fill(
        "page.html",
        hash=f"sha256-{digest}",
        title=html.escape(page.title),
        subtitle=html.escape(page.subtitle),
        scale=embed(shade(np.linspace(0, 1, 128))[None], lossless=True),
        style=fill(
            "page.css",
            brightness=f"{BRIGHTNESS}",
            panels=str(max((len(item.panels) for item in page.items), default=1)),
        ),
        photos="".join(
            f".p{image_id}{{background-image:url({photo.uri})}}"
            for image_id, photo in page.photos.items()
        ),
        filters=write_filters(page),
        measures="".join(
            f'<option value="{key}">{html.escape(label)}</option>'
            for key, label in page.measures.items()
        ),
        items="\n".join(write_item(item, page.photos[item.image_id]) for item in page.items),
        script=script,
    )


def fill(name: str, **parts: str) -> str:
    """A file of this package with each {{name}} replaced; what is put in is not searched."""
    text = (HERE / name).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], text)


def write_filters(page: Page) -> str:
    """A select per filter, with the values that items have."""
    selects = ""
    for key, label in page.filters.items():
        values = {item.values[key] for item in page.items if key in item.values}
        ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
        options = "".join(f"<option>{html.escape(str(value))}</option>" for value in ordered)
        selects += (
            f'<label>{html.escape(label)}<select name="{key}" data-key="{key}">'
            f'<option value="">any</option>{options}</select></label>'
        )
    return selects


def write_item(item: Item, photo: Photo) -> str:
    """One question."""
    values = html.escape(json.dumps(item.values, ensure_ascii=True))
    panels = "".join(write_panel(panel, item, photo) for panel in item.panels)
    return (
        f'<article id="q{item.question_id}" data-values="{values}">'
        f'<h2><button type="button" aria-haspopup="dialog">{html.escape(item.question)}'
        f'</button></h2><div class="panels">{panels}</div>'
        f'<p class="people">{html.escape(item.people)}</p></article>'
    )


def write_panel(panel: Panel, item: Item, photo: Photo) -> str:
    """One panel: the photo, the heat over it, the mixture over that, and the notes."""
    if panel.cells is None and panel.mixture is None:
        label = html.escape(f"photo: {item.question}")
        shown = f'<div class="photo p{item.image_id}" role="img" aria-label="{label}"></div>'
    else:
        alt = html.escape(f"{panel.title}: attention for “{item.question}”")
        kind = ' class="cells"' if is_sharp(panel) else ""
        shown = (
            f'<div class="photo p{item.image_id} dimmed"></div>'
            f'<img{kind} src="{draw_heat(panel, photo)}" alt="{alt}">'
        )
        if panel.mixture is not None:
            shown += draw_overlay(panel.mixture, photo.width, photo.height)
        elif panel.regions is not None:
            shown += draw_boxes(panel.regions, photo.width, photo.height)
    notes = "<br>".join(map(html.escape, panel.notes))
    caption = f"<figcaption><b>{html.escape(panel.title)}</b>{notes}</figcaption>"
    return f"<figure>{write_frame(shown, photo.width, photo.height, '100%')}{caption}</figure>"


def is_sharp(panel: Panel) -> bool:
    """Whether the heat is that of the cells of a grid, with their borders."""
    return panel.mixture is None and panel.boxes is None and not panel.smooth


def draw_heat(panel: Panel, photo: Photo) -> str:
    """The heat alone as a small picture with opacity: a pixel per cell, or at many points."""
    if is_sharp(panel):
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
    return embed_picture(picture, "webp", lossless=lossless, quality=80)


def embed_photo(photo: np.ndarray, side: int) -> Photo:
    """A photo (H, W, 3) uint8, made small enough to embed."""
    picture = Image.fromarray(photo)
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    return Photo(picture.width, picture.height, embed_picture(picture, "webp", quality=60))
