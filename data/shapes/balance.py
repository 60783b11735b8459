"""Which questions are asked: the same ones about two similar scenes, where their answers differ."""

from collections import Counter

import numpy as np

from data.shapes.questions import MOST_COUNTED, TEMPLATES, Question, ask_all
from data.shapes.scene import Scene, draw_scene, draw_twin

QUESTIONS_PER_SCENE = 5
Pair = tuple[Question, Question]


class Balance:
    """Counts what was asked so far and prefers what is still rare."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        # by (text, answer) and by (template, answer)
        self.answers: Counter[tuple[str, str]] = Counter()
        self.templates: Counter[str] = Counter()

    def choose(self, pairs: list[Pair]) -> list[Pair]:
        """A few pairs of questions of different texts that bring all shares nearer their aims."""
        chosen: list[Pair] = []
        left = [pair for pair in pairs if not self.is_common(pair)]
        while left and len(chosen) < QUESTIONS_PER_SCENE:
            template = self.rarest({pair[0].template for pair in left})
            pair = self.best([pair for pair in left if pair[0].template == template])
            self.count(pair)
            chosen.append(pair)
            left.remove(pair)
        return chosen

    def is_common(self, pair: Pair) -> bool:
        """Whether a pair asks for a number that was counted too often: small ones abound."""
        name = pair[0].template
        if TEMPLATES[name].answer_type != "number":
            return False
        limit = 3 + 1.2 * 2 * self.templates[name] / (MOST_COUNTED + 1)
        return any(self.answers[name, question.answer] > limit for question in pair)

    def rarest(self, names: set[str]) -> str:
        """The template that lags furthest behind its share."""
        return min(sorted(names), key=lambda name: self.templates[name] / TEMPLATES[name].share)

    def best(self, pairs: list[Pair]) -> Pair:
        """The pair whose answers were given least often; ties by lot."""
        order = self.generator.permutation(len(pairs)).tolist()
        return pairs[min(order, key=lambda number: self.surplus(pairs[number]))]

    def surplus(self, pair: Pair) -> float:
        """How often the answers of a pair were given, to this text and, counting less, to any."""
        return sum(
            self.answers[question.text, question.answer]
            + 0.1 * self.answers[question.template, question.answer]
            for question in pair
        )

    def count(self, pair: Pair) -> None:
        """Remember a pair."""
        self.templates[pair[0].template] += 1
        for question in pair:
            self.answers[question.text, question.answer] += 1
            self.answers[question.template, question.answer] += 1


def match_questions(scene: Scene, twin: Scene) -> list[Pair]:
    """The questions that both scenes answer, differently; several objects must lie far apart."""
    kinds = {(thing.color, thing.shape) for each in (scene, twin) for thing in each.things}
    one, other = ask_all(scene, kinds), ask_all(twin, kinds)
    return [
        (one[text], other[text])
        for text in one
        if text in other
        and one[text].answer != other[text].answer
        and is_spread(scene, one[text])
        and is_spread(twin, other[text])
    ]


def is_spread(scene: Scene, question: Question) -> bool:
    """Whether a question depends on one object at most, or on several that lie far apart."""
    return len(question.things) < 2 or scene.are_far_apart(question.things)


def draw_asked_scenes(
    generator: np.random.Generator, num_pairs: int
) -> list[tuple[Scene, list[Question]]]:
    """2·num_pairs scenes, twins next to each other, with QUESTIONS_PER_SCENE questions each."""
    balance = Balance(generator)
    asked: list[tuple[Scene, list[Question]]] = []
    while len(asked) < 2 * num_pairs:
        scene = draw_scene(generator)
        twin = draw_twin(generator, scene)
        pairs = match_questions(scene, twin)
        if len(pairs) < 3 * QUESTIONS_PER_SCENE:
            continue  # too few to choose from
        chosen = balance.choose(pairs)
        asked.append((scene, [pair[0] for pair in chosen]))
        asked.append((twin, [pair[1] for pair in chosen]))
    return asked
