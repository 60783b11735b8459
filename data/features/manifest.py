"""What a feature store says about itself: where it comes from, how it was made, what it holds."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from data.features.dtype import DEFAULT, DTYPES

FORMAT_VERSION = 1
STRIDE = 32  # pixels per cell of grid-feats-vqa's backbones
GRID_FEATS = (600, 1000)  # short and long side of grid-feats-vqa's images, in pixels
GRID, REGIONS = "grid", "regions"


@dataclasses.dataclass(frozen=True)
class Manifest:
    """`resize` is the images' (short, long) side in pixels; None sets the grids no limit.

    `stride` is the backbone's, in pixels per cell. `cells` says what a row of features is of: a
    cell of a grid over the image, or a region with a box of its own, n regions as a "grid" of n×1.
    """

    source: str
    backbone: str
    resize: tuple[int, int] | None
    num_images: int
    num_cells: int
    num_features: int
    checksum: str  # of image ids, grids and all rows: the same for equal contents
    dtype: str = DEFAULT.name
    version: int = FORMAT_VERSION
    stride: int = STRIDE
    cells: str = GRID

    @property
    def is_grid(self) -> bool:
        """Whether heights and widths are those of a grid over the image."""
        return self.cells == GRID

    @property
    def unit(self) -> str:
        """What one row of features is of."""
        return "cell" if self.is_grid else "region"

    def dump(self) -> str:
        """Write the manifest as JSON text."""
        fields = dataclasses.asdict(self)
        for name, default in DEFAULTS_OF_OLDER_STORES.items():
            if fields[name] == default:
                del fields[name]  # older versions reject a field that they do not know
        return json.dumps(fields, ensure_ascii=False, sort_keys=True)

    @classmethod
    def parse(cls, text: str, path: object) -> "Manifest":
        """Read the JSON text found in the store at `path`."""
        try:
            fields = json.loads(text)
            if isinstance(fields, dict):
                fields = {**DEFAULTS_OF_OLDER_STORES, **fields}
            check_fields(fields)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}: the manifest is not valid: {error}") from None
        fields["resize"] = None if fields["resize"] is None else tuple(fields["resize"])
        return cls(**fields)

    def require(
        self,
        path: object,
        backbone: str | None = None,
        resize: Sequence[int] | None = None,
        num_features: int | None = None,
        dtype: str | None = None,
        cells: str | None = None,
    ) -> None:
        """Raise when the store at `path` was made otherwise than asked; None asks nothing."""
        wanted = {
            "backbone": backbone,
            "resize": check_resize(resize),
            "num_features": num_features,
            "dtype": dtype,
            "cells": cells,
        }
        for name, value in wanted.items():
            found = getattr(self, name)
            if value is not None and found != value:
                raise ValueError(
                    f"{path} holds features with {name} {found}, but {name} {value} is asked for; "
                    "use another store or change the setting"
                )

    def check_alike(self, path: object, other: "Manifest", other_path: object) -> None:
        """Raise when the features of two splits are of different kinds; no resize fits any."""
        resizes = {self.resize, other.resize} - {None}
        kinds = [(each.backbone, each.num_features, each.cells) for each in (self, other)]
        if kinds[0] != kinds[1] or len(resizes) > 1:
            raise ValueError(
                f"{path} holds {self.describe()}, but {other_path} {other.describe()}; a "
                "model needs features of one kind: make one of the two again as the other was made"
            )

    @property
    def max_cells(self) -> int | None:
        """The most cells that a grid of this resize and stride has; None without a limit."""
        return None if self.resize is None else math.prod(limit_sides(self.resize, self.stride))

    def describe(self) -> str:
        """The kind of its features in a few words."""
        kind = f"{self.num_features} features per {self.unit} of backbone {self.backbone}"
        if not self.is_grid:
            return kind
        resize = "any size" if self.resize is None else f"{self.resize[0]}/{self.resize[1]}"
        return f"{kind}, resize {resize}"


# fields that older stores lack, and what holds for them
DEFAULTS_OF_OLDER_STORES = {"stride": STRIDE, "cells": GRID}


def check_fields(fields: Any) -> None:
    """Raise when a parsed manifest lacks a field or has one of another type."""
    if not isinstance(fields, dict):
        raise ValueError("expected a JSON object")
    names = {field.name for field in dataclasses.fields(Manifest)}
    if set(fields) != names:
        raise ValueError(f"fields {sorted(set(fields) ^ names)} are missing or unknown")
    for name in ("num_images", "num_cells", "num_features", "version", "stride"):
        if type(fields[name]) is not int or fields[name] < 1:
            raise ValueError(f"{name} is {fields[name]!r}, expected a positive whole number")
    for name in ("source", "backbone", "checksum", "dtype", "cells"):
        check_text(name, fields[name])
    if fields["cells"] not in (GRID, REGIONS):
        raise ValueError(f"cells is {fields['cells']!r}, expected {GRID} or {REGIONS}")
    if fields["version"] != FORMAT_VERSION:
        raise ValueError(f"format version {fields['version']}, expected {FORMAT_VERSION}")
    DTYPES[fields["dtype"]]  # must be there
    check_resize(fields["resize"])


def check_text(name: str, value: Any) -> str:
    """A field that must be text; raise when it is anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, expected text")
    return value


def check_resize(resize: Any) -> tuple[int, int] | None:
    """`resize` as (short, long) or None; raise when it is neither."""
    if resize is None:
        return None
    sides = list(resize) if isinstance(resize, Sequence) and not isinstance(resize, str) else []
    if len(sides) != 2 or any(type(side) is not int or side < 1 for side in sides):
        raise ValueError(f"resize is {resize!r}, expected [short side, long side] in pixels")
    if sides[0] > sides[1]:
        raise ValueError(f"resize is {list(sides)}, but its short side is the longer one")
    return sides[0], sides[1]


def limit_sides(resize: tuple[int, int], stride: int) -> tuple[int, int]:
    """The most cells on the short and on the long side of a grid; a part of a cell counts."""
    return -(-resize[0] // stride), -(-resize[1] // stride)


def check_grid(
    image_id: int,
    height: int,
    width: int,
    resize: tuple[int, int] | None,
    stride: int = STRIDE,
) -> None:
    """Raise when a grid is empty or of another resize: for 600/1000, 19×n or, if long, n×32.

    A resized image has the short side asked for, unless its long side would then exceed the limit:
    it has that one instead. One of the two sides is exact to the pixel, so its cells are too.
    """
    if height < 1 or width < 1:
        raise ValueError(f"image {image_id} has a grid of {height}×{width} cells")
    if resize is None:
        return
    short, long = limit_sides(resize, stride)
    fits = min(height, width) <= short and max(height, width) <= long
    if not fits or (min(height, width) < short and max(height, width) < long):
        raise ValueError(
            f"image {image_id} has {height}×{width} = {height * width} cells, but images resized "
            f"to {resize[0]}/{resize[1]} have at most {short}×{long} = {short * long}, and {short} "
            f"cells on the short side or {long} on the long one: these features come from another "
            "resize; give the one they were made with: resize=[short,long], or resize=null for any"
        )


def hash_index(
    image_ids: np.ndarray, heights: np.ndarray, widths: np.ndarray, checksums: np.ndarray
) -> str:
    """Hash ids, grids and the checksum of each image's rows, all (images,), to one text."""
    digest = hashlib.sha256()
    for array, kind in ((image_ids, "<i8"), (heights, "<i4"), (widths, "<i4"), (checksums, "<u4")):
        digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return digest.hexdigest()
