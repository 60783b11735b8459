"""What the options of an attention head tell before it is built, without torch."""

from collections.abc import Collection


def selects_components(options: Collection[str]) -> bool:
    """Whether a head with these options selects its number of components, and so has a λ."""
    return "lam" in options and "k_max" in options
