"""Kinds of values that several settings share."""

from typing import Annotated, Any

Count = Annotated[int, ">= 1"]
CountOrZero = Annotated[int, ">= 0"]
Folds = Annotated[int, ">= 2"]  # of a cross-validation
Seed = Annotated[int, ">= 0 and < 2^63"]
Positive = Annotated[float, "> 0"]
NotNegative = Annotated[float, ">= 0"]
Share = Annotated[float, ">= 0 and < 1"]
Required = Annotated[str, "required"]  # text that a user must give: ??? in the YAML
Sides = tuple[Count, Count]  # of images, short and long, or of grids, height and width
Options = dict[str, Any]  # of what is built by its name, which checks them itself
