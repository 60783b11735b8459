"""The `patch` backbone: a fixed description of image patches, one vector for each cell of a grid.

Legend: h, w cells; H, W analysis pixels (PIXELS per cell); S shapes; R radii; C colour names.
"""

import functools

import numpy as np
from PIL import Image

from data.backbones.patch.colors import NAMES, name_pixels
from data.backbones.patch.outlines import SHAPES
from data.backbones.patch.templates import RADII, match_templates, spread_maximum
from data.io.images import to_rgb

CELL = 24  # pixels of the resized image per cell
PIXELS = 12  # analysis pixels per cell
SHORTEST, LARGEST_SHORT, LONGEST = 8, 10, 16  # cells per side
ORIENTATIONS = 6
NUM_GREYS = 3  # the last of the colour names: white, gray, black
PEAK_REACH = 13  # analysis pixels: of two peaks closer than this only the higher one counts
NUM_FEATURES = (
    (2 * len(NAMES) + 2)  # colour names and figure, in the cell and around it
    + len(RADII) * len(SHAPES)  # responses
    + (2 + len(SHAPES) + len(RADII) + len(NAMES))  # the object
    + (6 + ORIENTATIONS)  # texture
)


def choose_grid(width: int, height: int) -> tuple[int, int]:
    """Rows and columns for an image of this size in pixels.

    The image is scaled so that its short side has 8 to 10 cells and its long side at most 16; an
    image that already has is not scaled. Nine cells per side, and eight by eight, are avoided:
    there the cells are out of step with the 10×10 basis functions of continuous attention.
    """
    short = min(width, height) / CELL
    scale = min(max(SHORTEST / short, 1.0), LARGEST_SHORT / short) / CELL
    sides = [min(max(round(side * scale), SHORTEST), LONGEST) for side in (height, width)]
    rows, columns = (10 if side == 9 else side for side in sides)
    return (10, 10) if rows == columns == 8 else (rows, columns)


def describe(image: Image.Image) -> np.ndarray:
    """Describe every cell of an image, (h, w, NUM_FEATURES) float32; any mode and size will do."""
    image = to_rgb(image)
    rows, columns = choose_grid(*image.size)
    size = (columns * CELL, rows * CELL)
    if image.size != size:
        image = image.resize(size, Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    names = halve(name_pixels(pixels))  # (C, H, W)
    background = int(names.mean(axis=(1, 2)).argmax())
    figure = 1 - names[background]  # what does not have the most common colour
    responses = match_templates(figure)  # (R, S, H, W)
    seen = np.concatenate([names, figure[None]])
    parts = [
        average_cells(seen, PIXELS),
        average_cells(seen, 2 * PIXELS),  # so that an object across a border is seen whole
        pool_responses(responses),
        describe_peaks(responses, names, background),
        describe_texture(pixels),
    ]
    described = np.concatenate(parts, dtype=np.float32).transpose(1, 2, 0)
    mean, deviation = typical_values()
    return np.ascontiguousarray((described - mean) / deviation)


@functools.cache
def typical_values() -> tuple[np.ndarray, np.ndarray]:
    """Typical mean and deviation of every feature over scenes of coloured shapes, (NUM_FEATURES,).

    They bring all features to one scale: few cells hold an object, and without it the background
    would dominate. Features of what an object is are scaled up further: otherwise a network learns
    the names of shapes far later than those of colours, which many more features tell.
    """
    hues, greys = len(NAMES) - NUM_GREYS, NUM_GREYS
    blocks = [  # number of features, mean, deviation
        *((hues, 0.0, 0.12), (greys, 0.3, 0.45), (1, 0.08, 0.17)),  # names and figure in the cell
        *((hues, 0.0, 0.08), (greys, 0.3, 0.45), (1, 0.08, 0.11)),  # and around it
        (len(RADII) * len(SHAPES), 0.16, 0.23),  # responses
        *((1, 0.08, 0.27), (1, 0.2, 0.3)),  # the object's centre, and how it covers the cell
        *((len(SHAPES), 0.04, 0.06), (len(RADII), 0.1, 0.1), (len(NAMES), 0.03, 0.1)),  # what
        *((3, 0.5, 0.35), (3, 0.05, 0.09), (ORIENTATIONS, 0.01, 0.05)),  # texture
    ]
    values = np.concatenate([np.tile([[mean], [deviation]], n) for n, mean, deviation in blocks], 1)
    return values[0].astype(np.float32), values[1].astype(np.float32)


def halve(maps: np.ndarray) -> np.ndarray:
    """Mean over blocks of 2×2, (n, 2H, 2W) to (n, H, W): from CELL to PIXELS pixels per cell."""
    down = maps[:, 0::2] + maps[:, 1::2]
    return (down[..., 0::2] + down[..., 1::2]) / 4


@functools.lru_cache(maxsize=64)
def _averaging_matrix(cells: int, window: int) -> np.ndarray:
    """(cells, cells·PIXELS): each row averages the window centred on a cell, cut at the edge."""
    centre = (np.arange(cells)[:, None] + 0.5) * PIXELS
    pixel = np.arange(cells * PIXELS) + 0.5
    near = (np.abs(pixel - centre) < window / 2).astype(np.float32)
    return near / near.sum(axis=1, keepdims=True)


def average_cells(maps: np.ndarray, window: int) -> np.ndarray:
    """Mean over a square of `window` pixels centred on each cell, (n, H, W) to (n, h, w)."""
    rows, columns = (side // PIXELS for side in maps.shape[1:])
    across = maps @ _averaging_matrix(columns, window).T
    return np.asarray(_averaging_matrix(rows, window) @ across)


def pool_responses(responses: np.ndarray) -> np.ndarray:
    """Highest positive response of every template within each cell, (R·S, h, w)."""
    height, width = responses.shape[2:]
    blocks = responses.reshape(-1, height // PIXELS, PIXELS, width).max(axis=2)
    highest = np.maximum(blocks[..., ::PIXELS], 0)
    for offset in range(1, PIXELS):
        np.maximum(highest, blocks[..., offset::PIXELS], out=highest)
    return highest


def describe_peaks(responses: np.ndarray, names: np.ndarray, background: int) -> np.ndarray:
    """What object lies at each cell, (2+S+R+C, h, w); zero where none does.

    The first number marks the one cell that holds an object's centre, wherever it lies on the
    grid; the others say how well the object covers the cell, and what it is.
    """
    num_radii, num_shapes, height, width = responses.shape
    depth = 1 + num_shapes + num_radii + len(names)
    centres = np.zeros((1, height // PIXELS, width // PIXELS), dtype=np.float32)
    described = np.zeros((depth, *centres.shape[1:]), dtype=np.float32)
    best = responses.reshape(-1, height, width).max(axis=0)
    peaks = (best > 0.6) & (best >= spread_maximum(best, PEAK_REACH))
    half = PIXELS // 2
    for y, x in np.argwhere(peaks):
        gate = 1 / (1 + np.exp(-(best[y, x] - 0.72) / 0.03))
        window = names[:, max(y - half, 0) : y + half + 1, max(x - half, 0) : x + half + 1]
        color = window.sum(axis=(1, 2))
        color[background] = 0
        here = responses[:, :, y, x]
        radius = RADII[int(here.max(axis=1).argmax())]
        kinds = [contrast(here.max(axis=0)), contrast(here.max(axis=1))]
        what = gate * np.concatenate([[1], *kinds, color / (color.sum() + 1)])
        cover = cover_cells(y, x, radius, *centres.shape[1:])
        nearer = gate * cover > described[0]
        described[:, nearer] = what[:, None] * cover[nearer]
        centre = (0, y // PIXELS, x // PIXELS)
        centres[centre] = max(gate, centres[centre])
    return np.concatenate([centres, described])


def cover_cells(y: float, x: float, radius: float, rows: int, columns: int) -> np.ndarray:
    """How much of a disc around a pixel lies near each cell's centre, (rows, columns) in [0, 1]."""
    down = (np.arange(rows) + 0.5) * PIXELS - y - 0.5
    right = (np.arange(columns) + 0.5) * PIXELS - x - 0.5
    distance = np.hypot(down[:, None], right)
    return np.clip((radius + PIXELS / 2 - distance) / PIXELS, 0, 1)


def contrast(responses: np.ndarray, temperature: float = 0.03) -> np.ndarray:
    """Softmax: which of the responses wins, and how clearly."""
    raised = np.exp((responses - responses.max()) / temperature)
    return np.asarray(raised / raised.sum())


def describe_texture(pixels: np.ndarray) -> np.ndarray:
    """Mean and spread of the channels, strength of edges by orientation: (6+ORIENTATIONS, h, w)."""
    values = halve(pixels.transpose(2, 0, 1).astype(np.float32) / 255)
    mean = average_cells(values, PIXELS)
    spread = np.sqrt(np.maximum(average_cells(values**2, PIXELS) - mean**2, 0))
    down, right = np.gradient(values.mean(axis=0))
    angle = np.arctan2(down, right) % np.pi
    index = np.minimum((angle * (ORIENTATIONS / np.pi)).astype(np.int64), ORIENTATIONS - 1)
    edges = np.hypot(down, right) * (index == np.arange(ORIENTATIONS)[:, None, None])
    return np.concatenate([mean, spread, 4 * average_cells(edges, PIXELS)])
