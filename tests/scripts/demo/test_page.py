"""The page's functions, called as Gradio calls them."""

import pytest

from scripts.demo.model_list import ModelList
from tests.small_models import draw_picture
from tests.small_runs import ALONE


def test_k_and_lambda_are_given_in_every_case_or_a_session_would_grow(peaky_run, tmp_path):
    """Gradio replaces an output that is left out, and keeps what it was when it is an input."""
    pytest.importorskip("gradio")
    from scripts.demo.page import Page

    page = Page(ModelList({"m": peaky_run / "best.pt"}, ALONE.device, changed={}), [])
    picture = tmp_path / "picture.png"
    draw_picture().save(picture)
    asked = (str(picture), "What color is the circle?", "m")
    first = page.do_ask(None, 0, 1.0, *asked)
    again = page.do_ask(first[page.session], 2, 0.5, *asked)
    wrong = page.do_ask(first[page.session], 2, 0.5, None, *asked[1:])
    other = page.do_switch(first[page.session], 2, 0.5, *asked)
    nothing = page.do_switch(None, 2, 0.5, *asked)
    for updates in (again, wrong, other, nothing):
        assert (updates[page.components], updates[page.lam]) == (2, 0.5)
    assert {page.components, page.lam} < first.keys()
    assert wrong[page.message]
    assert page.session not in wrong
