"""Pictures of scenes."""

import numpy as np
from PIL import Image, ImageDraw

from data.backbones.patch.colors import PROTOTYPES
from data.backbones.patch.descriptor import CELL
from data.backbones.patch.outlines import OUTLINES, rotate
from data.shapes.scene import Scene, SceneObject

SMOOTHING = 3  # drawn this many times larger, then reduced


def render(scene: Scene) -> Image.Image:
    """Draw a scene, CELL pixels per cell, as an RGB image."""
    picture = paint_background(scene)
    for thing in scene.things:
        paste_thing(picture, thing)
    return picture


def paint_background(scene: Scene) -> Image.Image:
    """A faint vertical gradient of the background's colour."""
    base = np.array(PROTOTYPES[scene.background], dtype=np.float64)
    fade = np.linspace(6, -10, scene.height * CELL)[:, None]
    column = np.clip(base + fade, 0, 255).astype(np.uint8)  # (H, 3)
    pixels = np.repeat(column[:, None], scene.width * CELL, axis=1)
    return Image.fromarray(pixels)


def paste_thing(picture: Image.Image, thing: SceneObject) -> None:
    """Lay one object over the image with smooth edges, in place."""
    left, top = (int((centre - thing.radius) * CELL) - 1 for centre in (thing.column, thing.row))
    side = int(2 * thing.radius * CELL) + 4
    cover = Image.new("L", (side * SMOOTHING, side * SMOOTHING), 0)
    draw = ImageDraw.Draw(cover)
    centre = np.array([thing.column * CELL - left, thing.row * CELL - top]) * SMOOTHING
    radius = thing.radius * CELL * SMOOTHING
    outline = centre + radius * rotate(OUTLINES[thing.shape], thing.angle)
    draw.polygon([tuple(point) for point in outline.tolist()], fill=255)
    color = tuple(min(max(value + thing.shade, 0), 255) for value in PROTOTYPES[thing.color])
    picture.paste(color, (left, top), cover.reduce(SMOOTHING))
