"""Photos, mixtures and panels to draw."""

import numpy as np

from figures.drawing.figure import FigureContent
from figures.drawing.mixture import DrawnMixture
from figures.drawing.panel import Panel

NASTY = (
    "How much is $5 and $x^2$ or \\frac{1}{2}_a & <script>alert('x')</script> \"漢字\" 🦒\u202e"
    "\tin\nthe café?"
)


def make_photo(height=60, width=90, seed=0):
    """(H, W, 3) uint8."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def make_mixture(num_components, seed=0, support=None):
    """Full covariances, some of them long and tilted."""
    generator = np.random.default_rng(seed)
    factors = generator.normal(0, 0.12, (num_components, 2, 2))
    return DrawnMixture(
        generator.dirichlet(np.ones(num_components)),
        generator.uniform(0.1, 0.9, (num_components, 2)),
        factors @ factors.transpose(0, 2, 1) + 0.002 * np.eye(2),
        support,
    )


def make_cells(height=8, width=10, seed=0):
    """(h, w), sum 1."""
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.full(height * width, 0.3)).reshape(height, width)


def make_content(height=60, width=90, question="Is there a ring?"):
    """A figure with every kind of panel."""
    panels = (
        Panel("image"),
        Panel("discrete", make_cells(), notes=("yes, 93 %", "JS divergence 0.50")),
        Panel("unimodal", mixture=make_mixture(1), notes=(NASTY,)),
        Panel("multimodal, K* = 4", mixture=make_mixture(4), notes=("no, 51 %",), is_marked=True),
        Panel(
            "multimodal, entmax15, paraboloid, K* = 3",
            mixture=make_mixture(3, support=6.0),
            notes=("no, 51 %",),
        ),
        Panel("human", make_cells(30, 45), smooth=True),
    )
    caption = ("People answered: yes (8), no (2)", NASTY * 3)
    return FigureContent(
        make_photo(height, width), question, panels, caption, "question 1, image 2 of val"
    )
