"""The page of many questions: self-contained, escaped, every picture with its question."""

import base64
import hashlib
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from figures.drawing.heat import shade, to_scale
from figures.drawing.html_parts import draw_overlay
from figures.drawing.panel import Panel
from figures.gallery.page import GENERATOR, Item, Page, draw_heat, embed_photo, write_page
from tests.figures.drawing.sample_panels import NASTY, make_cells, make_mixture, make_photo

HOSTILE = NASTY + (
    " </script><script>hacked=1</script> {{script}} {{items}} \"'><img src=x onerror=hacked=1>"
)


class Reader(HTMLParser):
    """Elements with their attributes and texts, by item."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.items = [], [], {}
        self.open, self.item = [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in ("meta", "img", "input", "br", "link"):
            self.open.append(tag)
        if tag == "article":
            self.item = attributes["id"]
            self.items[self.item] = {"values": attributes["data-values"], "text": "", "images": []}
        if self.item and (tag == "img" or attributes.get("role") == "img"):
            self.items[self.item]["images"].append(attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "article":
            self.item = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        if self.item:
            self.items[self.item]["text"] += data


def make_item(number, question, **more):
    panels = (
        Panel("image"),
        Panel("discrete", make_cells(), notes=(HOSTILE,)),
        Panel(HOSTILE, mixture=make_mixture(3), notes=("yes, 93 %",)),
        Panel("human", make_cells(30, 45), smooth=True),
    )
    values = {"type": HOSTILE, "components1": 3, "divergence": 0.25, "question": number} | more
    return Item(number, 7, question, panels, f"People answered: {HOSTILE}", values)


@pytest.fixture(scope="module")
def page():
    items = [make_item(1, "Is there a ring?"), make_item(2, HOSTILE)]
    photos = {7: embed_photo(make_photo(120, 80), 64)}
    measures = {"divergence": HOSTILE, "question": "question id"}
    return write_page(Page(HOSTILE, HOSTILE, items, photos, {"type": HOSTILE}, measures))


@pytest.fixture(scope="module")
def read(page):
    return Reader(page)


def picture(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/webp;base64,"))))


def test_text_stays_text_whatever_it_holds(read):
    assert read.open == []
    assert len(read.scripts) == 1
    assert not [e for e in read.elements if any(name.startswith("on") for name in e[1])]
    shown = " ".join(read.items["q2"]["text"].split())
    assert shown.startswith(" ".join(HOSTILE.split()))
    tags = {tag for tag, _ in read.elements}
    assert not tags & {"link", "iframe", "object", "base"}


def test_the_page_asks_for_nothing_from_elsewhere_and_runs_its_own_script_alone(page, read):
    assert not [a for _, a in read.elements if "href" in a]
    assert all(
        a["src"].startswith("data:image/webp;base64,") for _, a in read.elements if "src" in a
    )
    assert set(re.findall(r"url\((.{5})", page)) == {"data:"}
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page
    policy = next(
        a["content"] for _, a in read.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(read.scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_every_picture_says_which_question_it_is_for(read):
    for number, question in (("q1", "Is there a ring?"), ("q2", HOSTILE)):
        images = read.items[number]["images"]
        assert len(images) == 4
        assert all(question in (i.get("alt") or i.get("aria-label")) for i in images)


def test_an_item_carries_the_values_that_it_is_filtered_by(read):
    assert json.loads(read.items["q2"]["values"]) == make_item(2, "").values


def test_numbers_to_filter_by_are_offered_in_their_order():
    items = [make_item(number, "?", components1=number) for number in (10, 2, 1)]
    items[0].values["type"] = "yes/no"
    labels = {"components1": "K*", "type": "answer type"}
    photos = {7: embed_photo(make_photo(), 64)}
    page = write_page(Page("t", "s", items, photos, labels, {}))
    assert "<option>1</option><option>2</option><option>10</option></select>" in page
    assert page.count("<option>yes/no</option>") == 1


def test_a_photo_is_embedded_once_and_keeps_its_shape(page, read):
    assert page.count("background-image:url") == 1
    uri = re.search(r"\.p7\{background-image:url\((.*?)\)\}", page)[1]
    assert picture(uri).size == (43, 64)
    frames = [a["style"] for _, a in read.elements if a.get("class") == "frame"]
    assert len(frames) == 8
    assert all(style.startswith("aspect-ratio:43/64;") for style in frames)


def test_discrete_attention_has_a_pixel_a_cell_in_the_colours_of_the_figures(read):
    image = next(i for i in read.items["q1"]["images"] if i.get("class") == "cells")
    pixels = np.asarray(picture(image["src"]))
    expected = np.round(255 * shade(to_scale(make_cells()))).astype(np.uint8)
    visible = expected[..., 3] > 0
    assert pixels.shape == expected.shape == (8, 10, 4)
    assert np.array_equal(pixels[visible], expected[visible])


def test_a_mixture_is_drawn_with_its_means_where_the_photo_has_them(page):
    mixture = make_mixture(3)
    svg = re.search(r"<svg viewBox=\"0 0 ([\d.]+) ([\d.]+)\".*?</svg>", page)
    width, height = float(svg[1]), float(svg[2])
    assert (width / height, height) == pytest.approx((43 / 64, 300), rel=1e-3)
    dots = re.findall(r"<circle cx=\"([-\d.]+)\" cy=\"([-\d.]+)\"", svg[0])
    places = sorted((float(y) / height, float(x) / width) for x, y in dots)
    np.testing.assert_allclose(places, sorted(map(tuple, mixture.mu)), atol=1e-3)
    assert svg[0].count("<ellipse") == 12  # at one and two σ, each with a dark edge


def test_nothing_covers_the_photo_where_there_is_no_attention():
    photo = embed_photo(make_photo(), 64)
    cells = np.array([[0.0, 0.7], [0.3, 0.0]])
    opacity = np.asarray(picture(draw_heat(Panel("a", cells), photo)))[..., 3]
    assert np.array_equal(opacity > 0, cells > 0)
    mixture = make_mixture(2, seed=3, support=6.0)
    opacity = np.asarray(picture(draw_heat(Panel("b", mixture=mixture), photo)))[..., 3]
    outside = mixture.at_pixels(*opacity.shape) == 0
    assert not opacity[outside].any()
    assert (opacity[~outside] > 0).mean() > 0.9
    assert 0 < outside.mean() < 1


def test_a_paraboloid_has_one_outline():
    svg = draw_overlay(make_mixture(3, support=6.0), 90, 60)
    assert svg.count("<ellipse") == 6  # with a dark edge
    assert "stroke-dasharray" not in svg


def test_the_page_has_the_tag_by_which_a_gallery_is_recognised(page):
    assert GENERATOR in page[:2000]
