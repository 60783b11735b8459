"""The `patch` backbone: what its numbers tell, and that any picture will do."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from data.backbones.patch.colors import NAMES, PROTOTYPES, name_pixels
from data.backbones.patch.descriptor import (
    NUM_FEATURES,
    PIXELS,
    average_cells,
    choose_grid,
    cover_cells,
    describe,
    typical_values,
)
from data.backbones.patch.outlines import SHAPES
from data.backbones.patch.templates import FLATNESS, match_templates, spread_maximum, template_bank
from data.shapes.render import render
from data.shapes.scene import COLORS, Scene, SceneObject, draw_scene
from tests.data.backbones.sample_pictures import draw, turned
from tests.data.vqa.official_files import real_folder

GATE = 2 * (len(NAMES) + 1) + len(template_bank()) * len(SHAPES)  # where an object's centre stands


@pytest.fixture(scope="module")
def described() -> list[tuple[Scene, np.ndarray]]:
    """Scenes and the description of their pictures."""
    generator = np.random.default_rng(7)
    scenes = [draw_scene(generator) for _ in range(160)]
    return [(scene, describe(render(scene))) for scene in scenes]


def list_things(described: list[tuple[Scene, np.ndarray]]) -> tuple[list[SceneObject], np.ndarray]:
    """Every object and the description of the cell that holds its centre, (n, F)."""
    things, cells = [], []
    for scene, features in described:
        for thing in scene.things:
            things.append(thing)
            cells.append(features[int(thing.row), int(thing.column)])
    return things, np.stack(cells)


def probe(cells: np.ndarray, labels: list[int]) -> float:
    """Accuracy, on the last third, of a ridge classifier fitted to the first two thirds."""
    cut = 2 * len(cells) // 3
    inputs = np.concatenate([cells, np.ones((len(cells), 1))], axis=1, dtype=np.float64)
    target = np.eye(max(labels) + 1)[labels]
    known = inputs[:cut]
    gram = known.T @ known + 1e-2 * np.eye(inputs.shape[1])
    weights = np.linalg.solve(gram, known.T @ target[:cut])
    return float(((inputs[cut:] @ weights).argmax(axis=1) == np.array(labels)[cut:]).mean())


def test_a_linear_probe_reads_shape_colour_and_size_off_one_cell(described) -> None:
    things, cells = list_things(described)
    attributes = {
        "shape": [SHAPES.index(thing.shape) for thing in things],
        "colour": [COLORS.index(thing.color) for thing in things],
        "size": [int(thing.big) for thing in things],
    }
    found = {name: probe(cells, labels) for name, labels in attributes.items()}
    assert min(found.values()) >= 0.97, found


def test_every_object_has_one_peak(described) -> None:
    right = [
        len(scene.things) == int((features[..., GATE] > 1.5).sum()) for scene, features in described
    ]
    assert np.mean(right) > 0.97


def test_every_cell_that_an_object_fills_says_what_it_is_part_of(described) -> None:
    first = GATE + 2  # of the shapes
    right, filled = 0, 0
    for scene, features in described:
        for thing in scene.things:
            for row, column in np.ndindex(scene.height, scene.width):
                away = np.hypot(row + 0.5 - thing.row, column + 0.5 - thing.column)
                if away < thing.radius - 0.4:
                    named = features[row, column, first : first + len(SHAPES)].argmax()
                    right += SHAPES[named] == thing.shape
                    filled += 1
    assert filled > 100
    assert right / filled > 0.97


def test_cover_falls_from_one_to_nothing_over_the_edge_of_a_disc() -> None:
    cover = cover_cells(6 * PIXELS, 4 * PIXELS, 1.5 * PIXELS, 10, 8)
    away = np.hypot(*np.meshgrid(np.arange(10) + 0.5 - 6, np.arange(8) + 0.5 - 4, indexing="ij"))
    np.testing.assert_allclose(cover, np.clip(2 - away, 0, 1), atol=0.06)


def test_description_is_deterministic_and_finite(described) -> None:
    scene, features = described[0]
    assert features.shape == (scene.height, scene.width, NUM_FEATURES)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    np.testing.assert_array_equal(describe(render(scene)), features)


def test_description_does_not_depend_on_position() -> None:
    thing = SceneObject("star", "red", 2.5, 2.5, 0.65, 0.0, 0)
    elsewhere = SceneObject("star", "red", 5.5, 6.5, 0.65, 0.0, 0)
    one, other = (
        # the background's faint gradient is the only thing that tells rows apart
        describe(render(Scene(8, 10, "gray", (each,))))[int(each.row), int(each.column)]
        for each in (thing, elsewhere)
    )
    _, deviation = typical_values()  # compared on the scale of colours and fractions
    np.testing.assert_allclose(one * deviation, other * deviation, atol=0.05)


def test_template_responses_are_correlation_coefficients() -> None:
    figure = np.random.default_rng(0).random((48, 60))
    responses = match_templates(figure)
    padded = np.pad(figure, 20)
    for radius, (half, masks) in enumerate(template_bank()):
        for y, x in ((0, 0), (20, 31), (47, 59), (13, 5)):
            window = padded[20 + y - half : 21 + y + half, 20 + x - half : 21 + x + half]
            spread = np.sqrt(((window - window.mean()) ** 2).sum() + FLATNESS * window.size)
            for shape, mask in enumerate(masks):
                expected = (window * mask).sum() / spread
                assert responses[radius, shape, y, x] == pytest.approx(expected, abs=1e-4)


def test_spread_maximum_is_the_maximum_of_each_window() -> None:
    values = np.random.default_rng(1).random((23, 31))
    spread = spread_maximum(values, 4)
    for y in range(23):
        for x in range(31):
            window = values[max(y - 4, 0) : y + 5, max(x - 4, 0) : x + 5]
            assert spread[y, x] == window.max()


def test_cell_averages_are_means_over_the_window() -> None:
    maps = np.random.default_rng(2).random((3, 4 * PIXELS, 5 * PIXELS)).astype(np.float32)
    near, wide = average_cells(maps, PIXELS), average_cells(maps, 2 * PIXELS)
    half = PIXELS // 2
    for i in range(4):
        for j in range(5):
            y, x = i * PIXELS, j * PIXELS
            inner = maps[:, y : y + PIXELS, x : x + PIXELS]
            outer = maps[:, max(y - half, 0) : y + 3 * half, max(x - half, 0) : x + 3 * half]
            np.testing.assert_allclose(near[:, i, j], inner.mean(axis=(1, 2)), rtol=1e-5)
            np.testing.assert_allclose(wide[:, i, j], outer.mean(axis=(1, 2)), rtol=1e-5)


def test_colour_names_are_shares_and_prototypes_have_their_own_name() -> None:
    colors = np.array([list(PROTOTYPES.values())], dtype=np.uint8)
    shares = name_pixels(colors)[:, 0]  # (names, prototypes)
    np.testing.assert_allclose(shares.sum(axis=0), 1, rtol=1e-5)
    assert (shares.argmax(axis=0) == np.arange(len(NAMES))).all()


@given(width=st.integers(1, 5000), height=st.integers(1, 5000))
@settings(max_examples=200, deadline=None)
def test_any_size_gets_a_grid_of_eight_to_sixteen_cells_and_never_nine(
    width: int, height: int
) -> None:
    rows, columns = choose_grid(width, height)
    assert {rows, columns} <= {8, *range(10, 17)}
    assert min(rows, columns) <= 10
    if max(width, height) <= 1.5 * min(width, height):
        assert columns / rows == pytest.approx(width / height, rel=0.2)


def make_picture(mode: str) -> Image.Image:
    """A picture of some mode with a dark left half."""
    gray = np.full((90, 130), 200, dtype=np.uint8)
    gray[:, :65] = 30
    image = Image.fromarray(gray)
    if mode == "I;16":
        return Image.fromarray(gray.astype(np.uint16) << 8)
    return image.convert(mode)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "CMYK", "1", "LA", "I;16"])
def test_every_mode_of_picture_is_described_alike(mode: str) -> None:
    features = describe(make_picture(mode))
    assert features.shape == (8, 12, NUM_FEATURES)
    assert np.isfinite(features).all()
    left, right = features[:, :5, -12:-9].mean(), features[:, 7:, -12:-9].mean()
    assert left < 0.3 < right - 0.3


def test_transparent_pixels_look_white() -> None:
    clear = Image.new("RGBA", (192, 192), (255, 0, 0, 0))
    white = Image.new("RGB", (192, 192), (255, 255, 255))
    np.testing.assert_array_equal(describe(clear), describe(white))


def test_exif_orientation_is_applied() -> None:
    image = draw(288, 192)
    file = io.BytesIO()
    image.save(file, "PNG", exif=turned(6))  # the camera was held on its side
    with Image.open(file) as stored:
        np.testing.assert_array_equal(describe(stored), describe(image.rotate(-90, expand=True)))


@pytest.mark.real
def test_photographs_are_described() -> None:
    paths = sorted((real_folder() / "images").rglob("*.jpg"))[:20]
    assert paths
    for path in paths:
        with Image.open(path) as image:
            features = describe(image)
            assert features.shape[:2] == choose_grid(*image.size)
        assert np.isfinite(features).all()
        assert features.std() > 0.05
