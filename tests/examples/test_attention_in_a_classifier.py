"""The example of the library in another model: it learns, attends to both crosses, and draws."""

import contextlib
import io

import pytest
import torch
from PIL import Image

from examples.attention_in_a_classifier import NUM_COLORS, SIDE, draw_images, main


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The trained model, the picture that was drawn, and what was printed."""
    path = tmp_path_factory.mktemp("classifier") / "attended.png"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        model = main(str(path))
    return model, path, printed.getvalue()


def test_it_classifies_new_images_by_attending_to_both_crosses(done):
    model, _, _ = done
    images, classes, centres = draw_images(200, torch.Generator().manual_seed(7))
    with torch.no_grad():
        logits, attended = model(images)
    assert (logits.argmax(1) == classes).double().mean() > 0.85  # a third by chance
    mixture = attended.mixture
    is_two = mixture.num_components[:, 0] == 2
    assert is_two.double().mean() > 0.85
    # one mean at each cross, whose centres are drawn: within two cells of 4 pixels
    means = SIDE * mixture.mu[is_two, 0].double() - 0.5  # (n, 2, 2)
    distance = torch.cdist(means, centres[is_two].double())
    nearest = distance.min(1)
    assert (nearest.values < 8).double().mean() > 0.85
    assert (nearest.indices.sum(1) == 1).double().mean() > 0.85  # not both by one mean


def test_its_picture_has_four_images(done):
    _, path, printed = done
    assert "new images are classified correctly" in printed
    with Image.open(path) as picture:
        assert picture.width > 3 * picture.height


def test_the_class_is_the_color_of_neither_cross():
    images, classes, centres = draw_images(200, torch.Generator().manual_seed(3))
    shown = [
        {int(image[:, row, column].argmax()) for row, column in places}
        for image, places in zip(images, centres.tolist(), strict=True)
    ]
    others = [{*range(NUM_COLORS)} - {label} for label in classes.tolist()]
    right = [pair == other for pair, other in zip(shown, others, strict=True)]
    assert sum(right) > 170  # a plus of another colour may lie over a cross
