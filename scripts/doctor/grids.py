"""Grids of features, and whether the basis functions of continuous attention fit them."""

import warnings
from collections import Counter
from collections.abc import Iterator

import attention
from attention.basis import LARGEST_ERROR, RadialBasis, mean_of_ones
from data.features.reader import FeatureStore
from scripts.doctor.finding import Finding, warning

MOST_NAMED = 3  # grids in one finding


def check_fit(head: attention.Head, stores: dict[str, FeatureStore]) -> Iterator[Finding]:
    """Images whose grids are fitted badly, by split; nothing to report where there are none."""
    if not isinstance(head, attention.ContinuousHead):
        return
    for split, store in stores.items():
        if not store.manifest.is_grid:
            continue
        counts = Counter(zip(store.heights.tolist(), store.widths.tolist(), strict=True))
        bad = Counter({grid: n for grid, n in counts.items() if not is_fitted(head.basis, grid)})
        if bad:
            named = ", ".join(f"{h}×{w} ({n:,})" for (h, w), n in bad.most_common(MOST_NAMED))
            more = ", …" if len(bad) > MOST_NAMED else ""
            yield warning(
                f"{split}: {bad.total():,} of {len(store):,} images have grids that "
                f"{head.basis.num_basis} basis functions fit badly: {named}{more}",
                "extract them with another resize=[short,long], such as a larger limit of the long "
                "side for wide images, or pass another attention.num_basis",
            )


def is_fitted(basis: RadialBasis, grid: tuple[int, int]) -> bool:
    """Whether the library, when it meets this grid, will not warn of a bad fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # this very matter
        operator_LN = basis.ridge_operator(attention.Grid.of([grid], device="cpu"))[0]
    return abs(mean_of_ones(operator_LN, basis) - 1) <= LARGEST_ERROR
