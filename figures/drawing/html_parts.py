"""What pages are made of: pictures as data URIs, frames of a photo's shape, mixtures as SVG."""

import base64
import io
from typing import Any

from PIL import Image

from figures.drawing.labels import Label, label_weights
from figures.drawing.mixture import DrawnMixture
from figures.drawing.regions import THICKEST, THINNEST, Regions

SIDE = 300.0  # the longer side of the drawing, whatever the photo's: lines are in its units
LABEL_SIZE = 11.0
DOT = 4.0  # radius
DASHES = ("", ' stroke-dasharray="6 3"')  # of the first and the second outline of a component


def embed_picture(picture: Image.Image, kind: str, **options: Any) -> str:
    """A picture as a data URI; `options` are those of PIL for this kind of file."""
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return embed_file(file, kind)


def embed_file(file: io.BytesIO, kind: str) -> str:
    """The file of a picture as a data URI."""
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def write_frame(pictures: str, width: int, height: int, longest: str) -> str:
    """Pictures over each other, in the shape of a photo whose longer side is `longest` of CSS."""
    return (
        f'<div class="frame" style="aspect-ratio:{width}/{height};'
        f'max-width:calc(min(1,{width}/{height})*{longest})">{pictures}</div>'
    )


def draw_overlay(mixture: DrawnMixture, width: int, height: int) -> str:
    """Outlines at one and two σ or at the edge, means and mixing weights, in a photo's shape."""
    wide, tall = (SIDE * side / max(width, height) for side in (width, height))
    shapes = []
    for k in range(len(mixture.pi)):
        for deviations, dashes in zip(mixture.outlined_deviations, DASHES, strict=False):
            at = mixture.outline(k, tall, wide, deviations)
            ellipse = (
                f'<ellipse rx="{at.width / 2:.1f}" ry="{at.height / 2:.1f}" '
                f'transform="translate({at.x:.1f} {at.y:.1f}) rotate({at.angle:.1f})" fill="none"'
            )
            shapes.append(f'{ellipse} stroke="#000" stroke-opacity=".6" stroke-width="3"/>')
            shapes.append(f'{ellipse} stroke="#fff" stroke-width="1.4"{dashes}/>')
    labels = label_weights(mixture, tall, wide, size=LABEL_SIZE, padding=6, dot=2 * DOT + 2)
    for draw in (draw_line, draw_dot, draw_text):  # no line over a dot, no dot over a text
        shapes += map(draw, labels)
    return write_drawing(shapes, wide, tall)


def draw_boxes(regions: Regions, width: int, height: int) -> str:
    """The outlines of the heaviest boxes and their weights, for a photo of that shape."""
    wide, tall = (SIDE * side / max(width, height) for side in (width, height))
    shapes, strongest = [], regions.strongest()
    for left, top, across, down, share in strongest.outlines(tall, wide):
        box = (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{across:.1f}" height="{down:.1f}" '
            'fill="none"'
        )
        thickness = 1.4 * (THINNEST + (THICKEST - THINNEST) * share)
        shapes.append(f'{box} stroke="#000" stroke-opacity=".6" stroke-width="{thickness + 1.6}"/>')
        shapes.append(f'{box} stroke="#fff" stroke-width="{thickness:.1f}"/>')
    labels = strongest.labels(tall, wide, size=LABEL_SIZE, padding=6)
    for draw in (draw_line, draw_text):
        shapes += map(draw, labels)
    return write_drawing(shapes, wide, tall)


def write_drawing(shapes: list[str], width: float, height: float) -> str:
    """Shapes as one SVG of this size."""
    box = f'viewBox="0 0 {width:.1f} {height:.1f}"'
    return f'<svg {box} aria-hidden="true">{"".join(shapes)}</svg>'


def draw_line(label: Label) -> str:
    """The line from a mean to its mixing weight."""
    end = f'x2="{label.box.x:.1f}" y2="{label.box.y:.1f}"'
    return f'<line x1="{label.x:.1f}" y1="{label.y:.1f}" {end} stroke="#fff"/>'


def draw_dot(label: Label) -> str:
    """The dot at a mean."""
    centre = f'cx="{label.x:.1f}" cy="{label.y:.1f}"'
    return f'<circle {centre} r="{DOT:g}" stroke="#fff" stroke-width="1.2"/>'


def draw_text(label: Label) -> str:
    """A mixing weight on a light ground."""
    box = label.box
    left, top = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
        f' rx="2" fill="#fff" fill-opacity=".85"/>'
        f'<text x="{box.x:.1f}" y="{box.y:.1f}">{label.text.replace("<", "&lt;")}</text>'
    )
