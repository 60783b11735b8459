"""Question templates: what can be asked about a scene, the answer, the objects it depends on."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from data.backbones.patch.outlines import SHAPES
from data.shapes.scene import COLORS, Scene, SceneObject

MOST_COUNTED = 5
NOUNS = {"shape": "shapes", "color": "objects"}
Kind = tuple[str, str]  # colour, shape
Asked = Iterator[tuple[str, str, list[int]]]  # text, answer, objects that decide it


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
    ask: Callable[["View"], Asked]


class View:
    """A scene's objects by shape, colour and kind, for all kinds worth asking about."""

    def __init__(self, scene: Scene, kinds: Iterable[Kind]) -> None:
        self.scene = scene
        self.of_kind: dict[Kind, list[int]] = {kind: [] for kind in sorted(kinds)}
        colors, shapes = ({kind[part] for kind in self.of_kind} for part in (0, 1))
        self.of: dict[str, dict[str, list[int]]] = {
            "shape": {shape: [] for shape in SHAPES if shape in shapes},
            "color": {color: [] for color in COLORS if color in colors},
        }
        for number, thing in enumerate(scene.things):
            self.of["shape"][thing.shape].append(number)
            self.of["color"][thing.color].append(number)
            self.of_kind[thing.color, thing.shape].append(number)

    def single(self, by: str) -> Iterator[tuple[str, SceneObject, list[int]]]:
        """Every shape, or colour, that one object alone has, that object, and its number."""
        for name, found in self.of[by].items():
            if len(found) == 1:
                yield name, self.scene.things[found[0]], found

    def pairs(self, by: str) -> Iterator[tuple[tuple[str, list[int]], tuple[str, list[int]]]]:
        """Every two shapes, or colours, with their objects."""
        return itertools.combinations(self.of[by].items(), 2)


def ask_existence(view: View) -> Asked:
    """Is there a circle? Is there anything red?"""
    for by, word in (("shape", "a"), ("color", "anything")):
        for name, found in view.of[by].items():
            yield f"Is there {word} {name}?", say(bool(found)), found


def ask_kind(view: View) -> Asked:
    """Is there a red circle?"""
    for (color, shape), found in view.of_kind.items():
        article = "an" if color == "orange" else "a"
        yield f"Is there {article} {color} {shape}?", say(bool(found)), found


def ask_both(view: View) -> Asked:
    """Are there both circle and star shapes? Are there both red and blue objects?"""
    for by, noun in NOUNS.items():
        for (one, first), (other, second) in view.pairs(by):
            truth = bool(first and second)
            yield f"Are there both {one} and {other} {noun}?", say(truth), first + second


def ask_which(view: View) -> Asked:
    """Which are there, circle or star shapes? Which are there, red or blue objects?"""
    for by, noun in NOUNS.items():
        for (one, first), (other, second) in view.pairs(by):
            answer = one if first else other
            if bool(first) == bool(second):
                answer = "both" if first else "neither"
            yield f"Which are there, {one} or {other} {noun}?", answer, first + second


def ask_number(view: View, by: str) -> Asked:
    """How many circle shapes are there? How many red objects are there?"""
    for name, found in view.of[by].items():
        if len(found) <= MOST_COUNTED:
            yield f"How many {name} {NOUNS[by]} are there?", str(len(found)), found


def ask_color(view: View) -> Asked:
    """What color is the circle?"""
    for shape, thing, found in view.single("shape"):
        yield f"What color is the {shape}?", thing.color, found


def ask_shape(view: View) -> Asked:
    """What shape is the red object?"""
    for color, thing, found in view.single("color"):
        yield f"What shape is the {color} object?", thing.shape, found


def ask_more(view: View, by: str) -> Asked:
    """Are there more circle or star shapes? Are there more red or blue objects?"""
    for (one, first), (other, second) in view.pairs(by):
        answer = one if len(first) > len(second) else other
        if len(first) == len(second):
            answer = "equal"
        yield f"Are there more {one} or {other} {NOUNS[by]}?", answer, first + second


def ask_common(view: View, by: str) -> Asked:
    """What is the most common shape, or color of the objects? Only when one is."""
    sizes = sorted((len(found) for found in view.of[by].values()), reverse=True)
    if len(sizes) > 1 and sizes[0] > sizes[1]:
        name, found = max(view.of[by].items(), key=lambda item: len(item[1]))
        yield f"What is the most common {by}{' of the objects' * (by == 'color')}?", name, found


def ask_big(view: View) -> Asked:
    """What shape is the big object? What color is the big object?"""
    big = [number for number, thing in enumerate(view.scene.things) if thing.big]
    if len(big) == 1:
        thing = view.scene.things[big[0]]
        yield "What shape is the big object?", thing.shape, big
        yield "What color is the big object?", thing.color, big


def ask_size(view: View) -> Asked:
    """Is the circle big or small?"""
    for shape, thing, found in view.single("shape"):
        yield f"Is the {shape} big or small?", "big" if thing.big else "small", found


def ask_background(view: View) -> Asked:
    """What color is the background?"""
    yield "What color is the background?", view.scene.background, []


def say(truth: bool) -> str:
    """The answer to a yes/no question."""
    return "yes" if truth else "no"


TEMPLATES = {
    "existence": Template("is there", "yes/no", 0.09, ask_existence),
    "kind": Template("is there a", "yes/no", 0.06, ask_kind),
    "both": Template("are there", "yes/no", 0.12, ask_both),
    "which": Template("which", "other", 0.06, ask_which),
    "number of shape": Template("how many", "number", 0.13, partial(ask_number, by="shape")),
    "number of color": Template("how many", "number", 0.13, partial(ask_number, by="color")),
    "color": Template("what color is the", "other", 0.08, ask_color),
    "shape": Template("what shape is the", "other", 0.07, ask_shape),
    "more shapes": Template("are there more", "other", 0.055, partial(ask_more, by="shape")),
    "more colors": Template("are there more", "other", 0.055, partial(ask_more, by="color")),
    "common color": Template(
        "what is the most common", "other", 0.03, partial(ask_common, by="color")
    ),
    "common shape": Template(
        "what is the most common", "other", 0.03, partial(ask_common, by="shape")
    ),
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
