"""Controls that maps are compared with: the mean map of other images, an even and a blurred one."""

import numpy as np


def blur(cells: np.ndarray, deviation: float) -> np.ndarray:
    """A map (h, w) under a Gaussian of `deviation` cells; all mass stays within the image."""
    height, width = cells.shape
    return np.asarray(spread(height, deviation) @ cells @ spread(width, deviation).T)


def spread(count: int, deviation: float) -> np.ndarray:
    """(count, count): where the mass of each cell of a line goes; columns sum to 1."""
    distance = np.subtract.outer(np.arange(count), np.arange(count))
    kernel = np.exp(-0.5 * (distance / deviation) ** 2)
    return np.asarray(kernel / kernel.sum(0))


def average_other_images(
    maps: np.ndarray, map_images: np.ndarray, image_ids: np.ndarray
) -> np.ndarray:
    """The mean of maps (M, N) of all images (M,) but the question's own, for images (Q,): (Q, N).

    It knows where people look, the centre above all, and nothing of the image or the question.
    """
    images, image = np.unique(map_images, return_inverse=True)
    sums, counts = np.zeros((len(images), maps.shape[1])), np.bincount(image)
    np.add.at(sums, image, maps)
    place = np.searchsorted(images, image_ids).clip(max=len(images) - 1)
    own = (images[place] == image_ids)[:, None]
    others = np.maximum(sums.sum(0) - own * sums[place], 0)  # rounding may go below
    return np.asarray(others / (len(maps) - own * counts[place][:, None]))


def make_even(sizes: np.ndarray, num_cells: int) -> np.ndarray:
    """The same share for every cell of grids (Q, 2), zero past them: (Q, num_cells)."""
    counts = sizes.prod(axis=1)[:, None]
    return np.where(np.arange(num_cells) < counts, 1 / counts, 0.0)
