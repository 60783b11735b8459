"""Principal components of stored features."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from data.features.store_set import StoreSet

# enough for the covariance of some thousand features; read and added up in seconds
NUM_IMAGES = 600
CHUNK = 20  # images whose products are added up in float32 before they go into the sums


@dataclass(frozen=True)
class PrincipalComponents:
    """`directions` @ (x − mean): the first component has variance 1, the others less."""

    directions: Tensor  # (components, F) float32
    mean: Tensor  # (F,) float32
    explained: float  # share of the features' variance


def fit_pca(stores: StoreSet, image_ids: np.ndarray, num_components: int) -> PrincipalComponents:
    """Fit them to the cells of NUM_IMAGES of these images (n,), spread evenly over their ids."""
    places = stores.positions(np.unique(image_ids))
    chosen = places[np.linspace(0, len(places) - 1, min(NUM_IMAGES, len(places))).astype(int)]
    total = torch.zeros(stores.num_features, dtype=torch.float64)
    products = torch.zeros(stores.num_features, stores.num_features, dtype=torch.float64)
    num_cells = 0
    for start in range(0, len(chosen), CHUNK):
        cells = torch.cat([read_cells(stores, place) for place in chosen[start : start + CHUNK]])
        total += cells.sum(0)
        products += cells.T @ cells
        num_cells += len(cells)
    mean = total / num_cells
    covariance = products / num_cells - mean.outer(mean)
    if not covariance.isfinite().all():
        where = stores.find_bad_row(stores.image_ids[chosen])
        raise ValueError(f"the features are NaN or infinite: {where}")
    variances, directions = torch.linalg.eigh(covariance)  # ascending
    first = directions[:, -num_components:].flip(1).T / variances[-1].clamp(min=1e-12).sqrt()
    explained = float(variances[-num_components:].sum() / variances.sum().clamp(min=1e-12))
    return PrincipalComponents(first.float(), mean.float(), explained)


def read_cells(stores: StoreSet, place: int) -> Tensor:
    """(L, F) float32: the features of the image at a position."""
    shape = int(stores.heights[place]) * int(stores.widths[place]), stores.num_features
    cells = torch.empty(shape, dtype=stores.dtype.torch_dtype)
    stores.copy_rows(place, stores.dtype.to_array(cells))
    return cells.float()
