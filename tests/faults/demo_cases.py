"""What a visitor of the demo page sends: files as uploads, and any value in any field."""

import io
import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from figures.illustrated_split import to_photo
from scripts.demo.uploads import FORMATS as KINDS
from scripts.demo.uploads import read_upload
from tests.faults.fuzzing import Case, Fixture, Format, Fuzzer, damage
from tests.faults.json_contents import SCALARS
from tests.small_runs import ALONE

LARGEST = 1 << 16  # pixels of a valid image that are drawn; more would be slow
QUESTIONS = ["What is it?", "", "?" * 400, "é 東 \u202e \0", "<script>", "a " * 5000, "\udcff"]
NUMBERS = [0, 1, 2, 4, 5, -1, 10**20, 0.5, -0.0, 1e308, float("inf"), float("nan")]


def make_upload(path: Path, kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, kind)


def read_photo(path: Path) -> Any:
    picture = read_upload(path)
    return to_photo(picture, 64) if picture.width * picture.height <= LARGEST else None


def check_photo(photo: Any) -> None:
    assert photo is None or (photo.dtype == np.uint8 and photo.shape[2] == 3)


def prepare_form(folder: Path, fixture: Fixture) -> Case:
    """Every field of the page as its component takes it, then what the page does with it."""
    gradio = pytest.importorskip("gradio")
    from scripts.demo.model_list import ModelList
    from scripts.demo.page import Page
    from scripts.demo.session import start_session

    models = ModelList({"model": fixture("peaky_run") / "best.pt"}, ALONE.device, changed={})
    page, path = Page(models, []), folder / "photo.png"
    file = io.BytesIO()
    Image.effect_noise((30, 20), 80).convert("RGB").save(file, "PNG")
    path.write_bytes(file.getvalue())
    before = start_session(models, str(path), QUESTIONS[0], "model")

    def send(chance: random.Random) -> None:
        content = file.getvalue()
        path.write_bytes(content if chance.random() < 0.8 else damage(chance, content))
        named = chance.choice([str(path), str(path), str(path), str(folder / "none.png"), None])
        # a session's own choices of K are known to Gradio alone: one of them, or none
        components = chance.choice([None, 0, 1, models.get("model").trained.options["k_max"]])
        values = [
            chance.choice([0.5, 0, 10, *NUMBERS, *SCALARS]),
            chance.choice([*QUESTIONS, *SCALARS]),
            chance.choice(["model", "model", "model", *SCALARS]),
        ]
        fields = [page.lam, page.question, page.run]
        try:
            taken = [field.preprocess(value) for field, value in zip(fields, values, strict=True)]
        except (gradio.Error, TypeError, ValueError):
            return  # Gradio rejects it
        lam, question, run = taken
        updates = page.do_ask(chance.choice([None, before]), components, lam, named, question, run)
        page.do_move(updates.get(page.session, before), components, lam)
        page.do_check(named)

    return send


FUZZERS = [
    *(
        Fuzzer(kind.name, kind.prepare)
        for kind in (
            Format(f"upload, {kind}", f"photo.{kind.lower()}", partial(make_upload, kind=kind),
                   read_photo, check_photo)
            for kind in KINDS
        )
    ),
    Fuzzer("form fields", prepare_form, 40),
]  # fmt: skip
