"""Every equation of the paper is computed by a function that says so, and the page names it."""

import sys

import pytest
import torch

import attention
from tests.equations import CONTENTS, ROOT, find_places, list_tags, make_table, split_page


@pytest.mark.parametrize("tag", CONTENTS)
def test_a_function_says_that_it_computes_it(tag):
    assert find_places().get(tag), f"no docstring in attention/ names {tag} of the paper"


def test_no_docstring_names_what_the_paper_does_not_have():
    assert set(find_places()) == set(CONTENTS)


def test_a_range_of_equations_names_each_of_them():
    assert list(list_tags("π, Eq. (9), and μ, Σ, Eqs. (10)–(11): Algorithm 1, WeightedEM.")) == [
        "(9)", "(10)", "(11)", "WeightedEM",
    ]  # fmt: skip


def test_the_architecture_page_shows_where_they_are():
    _, table, _ = split_page()
    assert table == make_table(), "run `python -m tests.equations --write`"


def test_attention_at_test_time_passes_through_all_of_them_but_the_density_at_a_point():
    head = attention.build("multimodal").eval()
    called = set()

    def note(frame, event, argument):
        called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    sys.setprofile(note)
    try:
        head(torch.zeros(1, 80), torch.zeros(1, 80, 2), attention.Grid.of([(8, 10)]))
    finally:
        sys.setprofile(None)
    places = {place for named in find_places().values() for place in named}
    passed_by = {p.name for p in places if (str(ROOT / p.file), p.line) not in called}
    assert passed_by == {"Mixture.density"}
