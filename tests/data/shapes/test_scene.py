"""Scenes and their pictures."""

import itertools
import math

import numpy as np
import pytest

from data.backbones.patch.colors import PROTOTYPES
from data.backbones.patch.descriptor import CELL
from data.shapes.render import render
from data.shapes.scene import GRIDS, Scene, draw_scene, draw_twin


def draw_many(number: int, seed: int = 0) -> list[Scene]:
    """Scenes and their twins."""
    generator = np.random.default_rng(seed)
    scenes = []
    for _ in range(number):
        scene = draw_scene(generator)
        scenes += [scene, draw_twin(generator, scene)]
    return scenes


def test_no_object_covers_another_or_leaves_the_picture() -> None:
    for scene in draw_many(200):
        for thing in scene.things:
            left, top, right, bottom = thing.box
            assert left >= 0
            assert top >= 0
            assert right <= scene.width
            assert bottom <= scene.height
        for one, other in itertools.combinations(scene.things, 2):
            distance = math.hypot(one.row - other.row, one.column - other.column)
            assert distance > one.radius + other.radius


def test_grids_have_several_shapes_and_never_nine_cells_a_side() -> None:
    assert all(side != 9 for grid in GRIDS for side in grid)
    assert len({(scene.height, scene.width) for scene in draw_many(60)}) == len(GRIDS)


def test_twin_keeps_the_grid_and_most_objects() -> None:
    scenes = draw_many(100)
    for scene, twin in zip(scenes[::2], scenes[1::2], strict=True):
        assert (scene.height, scene.width) == (twin.height, twin.width)
        places = {(thing.row, thing.column) for thing in scene.things}
        assert len(places & {(thing.row, thing.column) for thing in twin.things}) >= 1


def test_same_seed_draws_the_same_scene_and_another_seed_another() -> None:
    assert draw_many(5, seed=3) == draw_many(5, seed=3)
    assert draw_many(5, seed=3) != draw_many(5, seed=4)


@pytest.mark.parametrize("scene", draw_many(6))
def test_picture_has_each_objects_colour_inside_and_the_background_between(scene: Scene) -> None:
    pixels = np.asarray(render(scene)).astype(int)
    assert pixels.shape == (scene.height * CELL, scene.width * CELL, 3)
    for thing in scene.things:
        # a ring is hollow in the middle: look into its band
        shift = 0.75 * thing.radius if thing.shape == "ring" else 0.0
        pixel = pixels[int(thing.row * CELL), int((thing.column + shift) * CELL)]
        assert np.abs(pixel - PROTOTYPES[thing.color]).max() <= 8
    assert np.abs(pixels[0, 0] - PROTOTYPES[scene.background]).max() <= 12
