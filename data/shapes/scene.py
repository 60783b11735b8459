"""Scenes: which coloured shapes lie where, and a twin of a scene that differs in a few objects."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from data.backbones.patch.outlines import SHAPES

COLORS = ("red", "orange", "yellow", "green", "blue", "purple")
BACKGROUNDS = ("white", "gray", "black", "pink", "brown")
# on which the attention's 10×10 basis fits a constant image well; with nine cells per side it fails
GRIDS = ((8, 10), (10, 8), (8, 11), (11, 8))
SMALL = (0.86, 0.98)  # radius in cells
BIG = (1.32, 1.42)
GAP = 0.25  # cells between the discs around two objects
MOST_OBJECTS = 8
FAR = 0.35  # of the image's diagonal
# probabilities of recolouring, reshaping, removing and adding an object
RECOLOURINGS, ALL_EDITS = (1.0, 0.0, 0.0, 0.0), (0.4, 0.32, 0.12, 0.16)


@dataclass(frozen=True)
class SceneObject:
    """One object: what it is, and its centre and radius in cells."""

    shape: str
    color: str
    row: float
    column: float
    radius: float
    angle: float  # degrees
    shade: int  # added to every channel of the colour, so that no two reds are the same

    @property
    def box(self) -> list[float]:
        """Left, top, right, bottom, in cells."""
        left, top = self.column - self.radius, self.row - self.radius
        return [left, top, left + 2 * self.radius, top + 2 * self.radius]

    @property
    def big(self) -> bool:
        return self.radius > (SMALL[1] + BIG[0]) / 2


@dataclass(frozen=True)
class Scene:
    """A background and the objects on a grid of height × width cells."""

    height: int
    width: int
    background: str
    things: tuple[SceneObject, ...]

    def are_far_apart(self, numbers: Sequence[int]) -> bool:
        """Whether two of these objects lie further apart than FAR of the image's diagonal."""
        places = [(self.things[n].row, self.things[n].column) for n in numbers]
        limit = FAR * math.hypot(self.height, self.width)
        return any(math.dist(*two) > limit for two in itertools.combinations(places, 2))


def draw_scene(generator: np.random.Generator) -> Scene:
    """A random scene; kinds repeat often, so that there is something to count."""
    height, width = GRIDS[generator.integers(len(GRIDS))]
    num_things = int(generator.integers(4, MOST_OBJECTS + 1))
    shapes = draw_kinds(generator, SHAPES, num_things)
    colors = draw_kinds(generator, COLORS, num_things)
    big = int(generator.integers(num_things)) if generator.random() < 0.5 else -1
    things: list[SceneObject] = []
    for number in range(num_things):
        radius = float(generator.uniform(*(BIG if number == big else SMALL)))
        place = find_room(generator, height, width, radius, things)
        if place is not None:
            things.append(make_thing(generator, shapes[number], colors[number], place, radius))
    background = BACKGROUNDS[generator.integers(len(BACKGROUNDS))]
    return Scene(height, width, background, tuple(things))


def draw_kinds(
    generator: np.random.Generator, kinds: tuple[str, ...], number: int
) -> tuple[str, ...]:
    """`number` kinds: in every other scene nearly all alike, so that high counts are common."""
    share = generator.dirichlet(np.full(len(kinds), 0.12 if generator.random() < 0.5 else 1.2))
    return tuple(kinds[i] for i in generator.choice(len(kinds), size=number, p=share))


def find_room(
    generator: np.random.Generator,
    height: int,
    width: int,
    radius: float,
    things: list[SceneObject],
) -> tuple[float, float] | None:
    """A random place where an object touches neither the edge nor another one, or None."""
    for _ in range(60):
        row = float(generator.uniform(radius + 0.1, height - radius - 0.1))
        column = float(generator.uniform(radius + 0.1, width - radius - 0.1))
        if all(
            math.dist((row, column), (other.row, other.column)) > radius + other.radius + GAP
            for other in things
        ):
            return row, column
    return None


def make_thing(
    generator: np.random.Generator,
    shape: str,
    color: str,
    place: tuple[float, float],
    radius: float,
) -> SceneObject:
    """An object with a slight turn and shade of its own."""
    angle = float(generator.uniform(-8, 8))
    return SceneObject(shape, color, *place, radius, angle, int(generator.integers(-8, 9)))


def draw_twin(generator: np.random.Generator, scene: Scene) -> Scene:
    """A similar image: the same shapes in other colours, or objects of all kinds changed."""
    things = list(scene.things)
    edits = RECOLOURINGS if generator.random() < 0.25 else ALL_EDITS
    for _ in range(int(generator.integers(3, 10))):
        edit_one(generator, things, scene, edits)
    if generator.random() < 0.7:
        swap_big(generator, things)
    background = scene.background
    if generator.random() < 0.3:
        background = BACKGROUNDS[generator.integers(len(BACKGROUNDS))]
    return replace(scene, background=background, things=tuple(things))


def edit_one(
    generator: np.random.Generator,
    things: list[SceneObject],
    scene: Scene,
    edits: tuple[float, ...],
) -> None:
    """Recolour, reshape, remove or add one object, with these probabilities, in place."""
    edit = generator.choice(4, p=edits)
    which = pick_one(generator, things, "shape" if edit == 0 else "color")
    # half of the time take a kind that the scene has: it makes ties, repetitions and matches
    shapes = [thing.shape for thing in things] if generator.random() < 0.5 else SHAPES
    colors = [thing.color for thing in things] if generator.random() < 0.5 else COLORS
    shape = shapes[generator.integers(len(shapes))]
    color = colors[generator.integers(len(colors))]
    if edit == 0:
        things[which] = replace(things[which], color=color)
    elif edit == 1:
        things[which] = replace(things[which], shape=shape)
    elif edit == 2 and len(things) > 3:
        del things[which]
    elif len(things) < MOST_OBJECTS:
        radius = float(generator.uniform(*SMALL))
        place = find_room(generator, scene.height, scene.width, radius, things)
        if place is not None:
            things.append(make_thing(generator, shape, color, place, radius))


def pick_one(generator: np.random.Generator, things: list[SceneObject], attribute: str) -> int:
    """The number of an object, half of the time one whose shape (or colour) no other has.

    "What color is the star?" needs a single star, and a twin in which just that one differs.
    """
    values = [getattr(thing, attribute) for thing in things]
    single = [number for number, value in enumerate(values) if values.count(value) == 1]
    if single and generator.random() < 0.5:
        return single[generator.integers(len(single))]
    return int(generator.integers(len(things)))


def swap_big(generator: np.random.Generator, things: list[SceneObject]) -> None:
    """Let the big object and a small one change what they are, in place."""
    big = [number for number, thing in enumerate(things) if thing.big]
    if not big:
        return
    first, second = big[0], pick_one(generator, things, "shape")
    one, other = things[first], things[second]
    things[first] = replace(one, shape=other.shape, color=other.color)
    things[second] = replace(other, shape=one.shape, color=one.color)
