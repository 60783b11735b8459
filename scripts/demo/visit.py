"""What the page's buttons do: each takes what the page holds and gives what it shows next."""

import base64
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from data.tokenizer import tokenize
from figures.sheet import draw_sheet, save_figure
from scripts.answer_sheet import make_sheet
from scripts.asking import Seen, View
from scripts.demo.shelf import Shelf
from scripts.demo.uploads import read_upload
from scripts.demo.view import write_answers, write_picture

SIDE = 640  # pixels of the longer side of the photo on the page
DPI = 200
BY_LAMBDA = 0  # the K that stands for: λ decides


@dataclass(frozen=True)
class Visit:
    """What one visitor asked last; it stays on the server, so that K and λ need no other pass."""

    seen: Seen
    photo: np.ndarray  # (H, W, 3) uint8, as large as the page shows it

    def view(self, num_components: int, lam: float) -> View:
        """The view under the page's K and λ."""
        seen = self.seen
        if not seen.k_max:
            return seen.choose()
        fixed = None if num_components == BY_LAMBDA else min(num_components, seen.k_max)
        return seen.choose(lam, fixed)

    def show(self, view: View) -> tuple[str, str]:
        """The picture and the answers as HTML."""
        return write_picture(self.seen, view, self.photo), write_answers(self.seen, view)

    def draw(self, view: View) -> str:
        """The figure as the data URI of a PNG."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "attention.png"
            save_figure(draw_sheet(make_sheet(self.seen, view)), path, "png", DPI)
            return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def begin_visit(shelf: Shelf, path: str | None, question: str, run: str) -> Visit:
    """Run the network once; raise a sentence for the visitor when that cannot be."""
    if not path:
        raise ValueError("There is no picture yet: upload one, or pick an example.")
    if not tokenize(question):
        raise ValueError("There is no question yet: type one, such as: What color is the circle?")
    seen = shelf.open(run).ask(read_upload(path), question)
    photo = Image.fromarray(seen.photo)
    photo.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    return Visit(seen, np.asarray(photo))
