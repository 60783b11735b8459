"""Question templates: what can be asked about a scene, the answer, the objects it rests on."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from data.outlines import SHAPES
from data.shapes.scene import COLORS, Scene

MOST_COUNTED = 5
Kind = tuple[str, str]  # colour, shape


@dataclass(frozen=True)
class Question:
    """A question about one scene; `things` are the numbers of the objects that decide it."""

    template: str
    text: str
    answer: str
    things: tuple[int, ...]


@dataclass(frozen=True)
class Template:
    """How a kind of question is asked, its official types, and its share of all questions."""

    question_type: str
    answer_type: str
    share: float
    ask: Callable[["View"], Iterator[tuple[str, str, list[int]]]]  # text, answer, things


class View:
    """A scene sorted by shape, colour and kind, and the kinds worth asking about."""

    def __init__(self, scene: Scene, kinds: Iterable[Kind]) -> None:
        self.scene = scene
        self.kinds = sorted(kinds)
        self.colors = sorted({color for color, _ in self.kinds}, key=COLORS.index)
        self.shapes = sorted({shape for _, shape in self.kinds}, key=SHAPES.index)
        self.of_shape: dict[str, list[int]] = defaultdict(list)
        self.of_color: dict[str, list[int]] = defaultdict(list)
        self.of_kind: dict[Kind, list[int]] = defaultdict(list)
        for number, thing in enumerate(scene.things):
            self.of_shape[thing.shape].append(number)
            self.of_color[thing.color].append(number)
            self.of_kind[thing.color, thing.shape].append(number)


Asked = Iterator[tuple[str, str, list[int]]]


def ask_existence(view: View) -> Asked:
    """Is there a circle? Is there anything red?"""
    for shape in view.shapes:
        found = view.of_shape[shape]
        yield f"Is there a {shape}?", say(bool(found)), found
    for color in view.colors:
        found = view.of_color[color]
        yield f"Is there anything {color}?", say(bool(found)), found


def ask_kind(view: View) -> Asked:
    """Is there a red circle?"""
    for color, shape in view.kinds:
        found = view.of_kind[color, shape]
        article = "an" if color == "orange" else "a"
        yield f"Is there {article} {color} {shape}?", say(bool(found)), found


def ask_both(view: View) -> Asked:
    """Are there both circle and star shapes? Are there both red and blue objects?"""
    for one, other in itertools.combinations(view.shapes, 2):
        found = view.of_shape[one], view.of_shape[other]
        text = f"Are there both {one} and {other} shapes?"
        yield text, say(all(found)), found[0] + found[1]
    for one, other in itertools.combinations(view.colors, 2):
        found = view.of_color[one], view.of_color[other]
        text = f"Are there both {one} and {other} objects?"
        yield text, say(all(found)), found[0] + found[1]


def ask_which(view: View) -> Asked:
    """Which are there, circle or star shapes? Which are there, red or blue objects?"""
    for one, other in itertools.combinations(view.shapes, 2):
        text = f"Which are there, {one} or {other} shapes?"
        yield name_present(text, (one, other), view.of_shape[one], view.of_shape[other])
    for one, other in itertools.combinations(view.colors, 2):
        text = f"Which are there, {one} or {other} objects?"
        yield name_present(text, (one, other), view.of_color[one], view.of_color[other])


def ask_number_of_shape(view: View) -> Asked:
    """How many circle shapes are there?"""
    for shape in view.shapes:
        found = view.of_shape[shape]
        if len(found) <= MOST_COUNTED:
            yield f"How many {shape} shapes are there?", str(len(found)), found


def ask_number_of_color(view: View) -> Asked:
    """How many red objects are there?"""
    for color in view.colors:
        found = view.of_color[color]
        if len(found) <= MOST_COUNTED:
            yield f"How many {color} objects are there?", str(len(found)), found


def ask_color(view: View) -> Asked:
    """What color is the circle?"""
    for shape in view.shapes:
        found = view.of_shape[shape]
        if len(found) == 1:
            yield f"What color is the {shape}?", view.scene.things[found[0]].color, found


def ask_shape(view: View) -> Asked:
    """What shape is the red object?"""
    for color in view.colors:
        found = view.of_color[color]
        if len(found) == 1:
            yield f"What shape is the {color} object?", view.scene.things[found[0]].shape, found


def ask_more_shapes(view: View) -> Asked:
    """Are there more circle or star shapes?"""
    for one, other in itertools.combinations(view.shapes, 2):
        text = f"Are there more {one} or {other} shapes?"
        yield compare(text, (one, other), view.of_shape[one], view.of_shape[other])


def ask_more_colors(view: View) -> Asked:
    """Are there more red or blue objects?"""
    for one, other in itertools.combinations(view.colors, 2):
        text = f"Are there more {one} or {other} objects?"
        yield compare(text, (one, other), view.of_color[one], view.of_color[other])


def ask_common_color(view: View) -> Asked:
    """What is the most common color of the objects?"""
    yield from ask_most("What is the most common color of the objects?", view.of_color)


def ask_common_shape(view: View) -> Asked:
    """What is the most common shape?"""
    yield from ask_most("What is the most common shape?", view.of_shape)


def ask_big(view: View) -> Asked:
    """What shape is the big object? What color is the big object?"""
    big = [number for number, thing in enumerate(view.scene.things) if thing.big]
    if len(big) == 1:
        thing = view.scene.things[big[0]]
        yield "What shape is the big object?", thing.shape, big
        yield "What color is the big object?", thing.color, big


def ask_size(view: View) -> Asked:
    """Is the circle big or small?"""
    for shape in view.shapes:
        found = view.of_shape[shape]
        if len(found) == 1:
            size = "big" if view.scene.things[found[0]].big else "small"
            yield f"Is the {shape} big or small?", size, found


def ask_background(view: View) -> Asked:
    """What color is the background?"""
    yield "What color is the background?", view.scene.background, []


def ask_most(text: str, groups: dict[str, list[int]]) -> Asked:
    """The name of the largest group, when it is the only one of its size."""
    sizes = sorted((len(things) for things in groups.values()), reverse=True)
    if len(sizes) > 1 and sizes[0] > sizes[1]:
        name = max(groups, key=lambda each: len(groups[each]))
        yield text, name, groups[name]


def compare(
    text: str, names: tuple[str, str], one: list[int], other: list[int]
) -> tuple[str, str, list[int]]:
    """Which of two groups is larger, or "equal"."""
    difference = len(one) - len(other)
    answer = "equal" if difference == 0 else names[0] if difference > 0 else names[1]
    return text, answer, one + other


def name_present(
    text: str, names: tuple[str, str], one: list[int], other: list[int]
) -> tuple[str, str, list[int]]:
    """Which of two groups is there, "both" or "neither"."""
    if bool(one) == bool(other):
        return text, "both" if one else "neither", one + other
    return text, names[0] if one else names[1], one + other


def say(truth: bool) -> str:
    """The answer to a yes/no question."""
    return "yes" if truth else "no"


TEMPLATES = {
    "existence": Template("is there", "yes/no", 0.09, ask_existence),
    "kind": Template("is there a", "yes/no", 0.06, ask_kind),
    "both": Template("are there", "yes/no", 0.12, ask_both),
    "which": Template("which", "other", 0.06, ask_which),
    "number of shape": Template("how many", "number", 0.13, ask_number_of_shape),
    "number of color": Template("how many", "number", 0.13, ask_number_of_color),
    "color": Template("what color is the", "other", 0.08, ask_color),
    "shape": Template("what shape is the", "other", 0.07, ask_shape),
    "more shapes": Template("are there more", "other", 0.055, ask_more_shapes),
    "more colors": Template("are there more", "other", 0.055, ask_more_colors),
    "common color": Template("what is the most common", "other", 0.03, ask_common_color),
    "common shape": Template("what is the most common", "other", 0.03, ask_common_shape),
    "big": Template("what", "other", 0.02, ask_big),
    "size": Template("is the", "other", 0.05, ask_size),
    "background": Template("what color is the background", "other", 0.02, ask_background),
}


def ask_all(scene: Scene, kinds: Iterable[Kind]) -> dict[str, Question]:
    """Every question that has an answer in this scene, by its text."""
    view = View(scene, kinds)
    asked = {}
    for name, template in TEMPLATES.items():
        for text, answer, things in template.ask(view):
            asked[text] = Question(name, text, answer, tuple(things))
    return asked
