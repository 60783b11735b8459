"""What pages are made of: pictures as data URIs, frames of a photo's shape, mixtures as SVG."""

import base64
import io
from typing import Any

from PIL import Image

from figures.drawing.gaussians import Gaussians
from figures.drawing.labels import Label, label_weights

SIDE = 300.0  # the longer side of the drawing, whatever the photo's: lines are in its units
LABEL_SIZE = 11.0
DOT = 4.0  # radius


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


def draw_overlay(mixture: Gaussians, width: int, height: int) -> str:
    """Ellipses at one and two σ, means and mixing weights, for a photo of that shape."""
    wide, tall = (SIDE * side / max(width, height) for side in (width, height))
    shapes = []
    for k in range(len(mixture.pi)):
        for deviations, dashes in ((1, ""), (2, ' stroke-dasharray="6 3"')):
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
    return f'<svg viewBox="0 0 {wide:.1f} {tall:.1f}" aria-hidden="true">{"".join(shapes)}</svg>'


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
