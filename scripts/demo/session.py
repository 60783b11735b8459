"""A visitor's session: the last question and image, and what the page shows of them."""

import io
from dataclasses import dataclass

import numpy as np

from data.text.tokenizer import tokenize
from figures.answer_figure import make_answer_figure
from figures.drawing.figure import draw_figure, save_figure
from figures.drawing.html_parts import embed_file
from figures.illustrated_split import to_photo
from mcan.evaluation.single_question import Answer, ForwardPass
from scripts.demo.answer_html import write_answers, write_attention
from scripts.demo.model_list import ModelList
from scripts.demo.uploads import read_upload

PAGE_SIDE, FIGURE_SIDE = 640, 1000  # pixels of the longer side of the photo
DPI = 200
BY_LAMBDA = 0  # the K that means: selected with λ


@dataclass(frozen=True)
class Session:
    """The last forward pass; it stays on the server, so that K and λ need no other."""

    forward: ForwardPass
    page_photo: np.ndarray  # (H, W, 3) uint8
    figure_photo: np.ndarray

    def answer(self, num_components: int, lam: float) -> Answer:
        """The answer under the page's K and λ."""
        forward = self.forward
        if not forward.k_max:
            return forward.answer()
        fixed = None if num_components == BY_LAMBDA else min(num_components, forward.k_max)
        return forward.answer(lam, fixed)

    def show(self, answer: Answer) -> tuple[str, str]:
        """The attention and the answers as HTML."""
        attention = write_attention(self.forward, answer, self.page_photo)
        return attention, write_answers(self.forward, answer)

    def draw(self, answer: Answer) -> str:
        """The figure as the data URI of a PNG."""
        figure = draw_figure(make_answer_figure(self.forward, answer, self.figure_photo))
        file = io.BytesIO()
        save_figure(figure, file, "png", DPI)
        return embed_file(file, "png")


def start_session(
    models: ModelList, path: str | None, question: str | None, run: str | None
) -> Session:
    """Run the network once; raise a sentence for the visitor when that cannot be."""
    if not path:
        raise ValueError("There is no image yet: upload one, or pick an example.")
    if not question or not tokenize(question):
        raise ValueError("There is no question yet: type one, such as: What color is the circle?")
    if run is None:
        raise ValueError("There is no model yet: choose one.")
    picture = read_upload(path)
    forward = models.get(run).run(picture, question)
    forward.answer()  # raises where the network's answers are NaN
    return Session(forward, to_photo(picture, PAGE_SIDE), to_photo(picture, FIGURE_SIDE))
