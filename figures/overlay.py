"""A mixture as SVG, to lie over a photo in a page."""

from figures.gaussians import Gaussians
from figures.labels import place_labels
from figures.lettering import measure
from figures.panel import name_weight

SIDE = 300.0  # the longer side of the drawing, whatever the photo's: lines are in its units
LETTERS = 11.0
DOT = 4.0  # radius


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
    shapes += draw_weights(mixture, wide, tall)
    return f'<svg viewBox="0 0 {wide:.1f} {tall:.1f}" aria-hidden="true">{"".join(shapes)}</svg>'


def draw_weights(mixture: Gaussians, wide: float, tall: float) -> list[str]:
    """A dot at each mean, and its mixing weight beside it where no other label is."""
    order = sorted(range(len(mixture.pi)), key=lambda k: -mixture.pi[k])
    texts = [name_weight(mixture.pi[k]) for k in order]
    points = [(float(x), float(y)) for x, y in mixture.centres(tall, wide)[order]]
    sizes = [(measure(text, LETTERS) + 6, LETTERS + 5) for text in texts]
    boxes = place_labels(points, sizes, wide, tall, 2 * DOT + 2)
    drawn = [
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{box.x:.1f}" y2="{box.y:.1f}" stroke="#fff"/>'
        for (x, y), box in zip(points, boxes, strict=True)
    ]
    drawn += [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT:g}" stroke="#fff" stroke-width="1.2"/>'
        for x, y in points
    ]
    for text, box in zip(texts, boxes, strict=True):
        left, top = box.x - box.width / 2, box.y - box.height / 2
        drawn.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
            f' rx="2" fill="#fff" fill-opacity=".85"/>'
            f'<text x="{box.x:.1f}" y="{box.y:.1f}">{text.replace("<", "&lt;")}</text>'
        )
    return drawn
