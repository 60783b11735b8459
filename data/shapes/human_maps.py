"""Maps of where people would look: blobs on the objects that decide a question, as in VQA-HAT."""

import numpy as np
from PIL import Image

from data.backbones.patch.descriptor import CELL
from data.shapes.scene import Scene

NUM_MAPS = 3  # annotators per question
BLACK_SHARE = 0.02  # of the maps; people sometimes sent one back untouched
STEP = 4  # pixels: drawn coarsely, then smoothly enlarged


def draw_map(generator: np.random.Generator, scene: Scene, things: tuple[int, ...]) -> Image.Image:
    """One annotator's map, greyscale, of the size of the image."""
    size = (scene.width * CELL, scene.height * CELL)
    if generator.random() < BLACK_SHARE:
        return Image.new("L", size, 0)
    cells = STEP / CELL
    rows = (np.arange(size[1] // STEP)[:, None] + 0.5) * cells
    columns = (np.arange(size[0] // STEP) + 0.5) * cells
    blobs = []  # row, column, width, strength
    for number in choose_looked_at(generator, things):
        thing = scene.things[number]
        place = generator.normal((thing.row, thing.column), 0.15)
        width = thing.radius * generator.uniform(0.7, 1.1)
        blobs.append((*place, width, generator.uniform(0.7, 1.0)))
    if generator.random() < 0.2:  # a stray glance
        blobs.append((*generator.uniform(0, (scene.height, scene.width)), 0.6, 0.4))
    heat = np.zeros((len(rows), len(columns)))
    for row, column, width, strength in blobs:
        distance = (rows - row) ** 2 + (columns - column) ** 2
        heat = np.maximum(heat, strength * np.exp(-distance / (2 * width**2)))
    gray = Image.fromarray(np.round(255 * heat / heat.max()).astype(np.uint8))
    return gray.resize(size, Image.Resampling.BICUBIC)


def choose_looked_at(generator: np.random.Generator, things: tuple[int, ...]) -> list[int]:
    """All the objects that matter; with three or more, now and then one is overlooked."""
    looked = list(things)
    if len(looked) > 2 and generator.random() < 0.15:
        del looked[generator.integers(len(looked))]
    return looked
