"""Settings of another type, unknown ones and odd names: one sentence each, or they just work."""

import importlib
import sys

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from scripts.overrides import choose_groups, quote_value
from scripts.settings import find_problems


def run(monkeypatch, capsys, *words):
    """The exit code and the error of a command in this process."""
    module = importlib.import_module(f"scripts.{words[0]}")
    monkeypatch.setattr(sys, "argv", list(words))
    with pytest.raises(SystemExit) as stop:
        module.main()
    return stop.value.code, capsys.readouterr().err


SCORE = ("score", "questions=q", "annotations=a")
FEATURES = ("features", "source=s", "output=o")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*SCORE, "results=[a,b]"), "results must be text, such as a path, not [a,b]"),
        ((*SCORE, "results={a:1}"), "results must be text, such as a path, not {'a': 1}"),
        ((*SCORE, "results=5"), "results must be text, such as a path, not 5; quote it: "),
        ((*SCORE, "results=r", "output=5"), "output must be text, such as a path, not 5"),
        ((*SCORE, "results=r", "output=true"), "output must be text, such as a path, not true"),
        ((*SCORE, "results=${nope}"), "'nope' not found"),
        (("features", "source=5", "output=o"), "source must be text"),
        (("features", "source=s", "output=5"), "output must be text"),
        ((*FEATURES, "num_threads=abc"), "num_threads must be a whole number, not 'abc'"),
        ((*FEATURES, "+foo=1"), "there is no setting 'foo'"),
        ((*FEATURES, "force=no"), "force must be true or false, not 'no'"),
        ((*FEATURES, "backbone=101"), "backbone must be text such as 'grid-feats', not 101"),
        ((*FEATURES, "backbone=null"), "backbone must be text such as 'grid-feats', not null"),
        ((*FEATURES, "backbone=[a,b]"), "backbone must be text such as 'grid-feats', not [a,b]"),
        ((*FEATURES, "resize=abc"), "resize must be a list such as [600,1000], not 'abc'"),
        (("verify_features", "store=5"), "store must be text"),
        (("verify_features", "store=s", "resize=600"), "resize is 600, expected [short side"),
        (("verify_features", "store=s", "questions=5"), "questions must be text"),
        (("data", "data.name=foo"), "there is no dataset 'foo'"),
        (("data", "data.root=5"), "data.root must be text"),
        (("data", "data.root=null"), "data.root must be text"),
        (("data", "data.num_workers=abc"), "data.num_workers must be a whole number"),
        (("data", "data=vqa_v2", "data.answers_more_than=abc"), "must be a whole number"),
        (("data", "data=vqa_v2", "data.pause=abc"), "data.pause must be a number, not 'abc'"),
        (("data", "data=vqa_v2", "data.url=5"), "data.url must be text"),
        (("data", "data.force=no"), "data.force must be true or false, not 'no'"),
        (("bench.__main__", "toy=abc"), "toy must be true or false, not 'abc'"),
        (("bench.__main__", "parts=5"), "parts must be a list such as [loading,scoring,"),
        (("bench.__main__", "parts=nope"), "not 'nope'"),
        (("bench.__main__", "parts=[nope]"), "there is no part 'nope' to measure"),
        (("bench.__main__", "device=foo"), "there is no device 'foo'"),
        (("bench.__main__", "device=[a]"), "device must be text"),
        (("bench.__main__", "document=true", "toy=true"), "and not toy=true"),
        (("data", "zzzz=1"), "there is no setting 'zzzz'; there are data"),
        (("data", "~data.force"), "force"),
        (("train", "name=7"), "name must be text, such as a path, not 7; quote it: \"name='7'\""),
        (("train", "init_from=7"), "init_from must be text, such as a path, not 7"),
        (("train", "glove=[a]"), "glove must be text, such as a path, not [a]"),
        (("train", "runtime.stage_to=7"), "runtime.stage_to must be text"),
        (("train", "runtime.device=0"), "runtime.device must be text"),
        (("train", "seed=-1"), "seed must be a whole number from 0 to 2^63 - 1, not -1"),
        (
            ("train", f"seed={2**63}"),
            f"seed must be a whole number from 0 to 2^63 - 1, not {2**63}",
        ),
        (("data", "data.seed=-1"), "data.seed must be a whole number from 0"),
    ],
)
def test_a_setting_of_another_type_ends_in_one_sentence(
    monkeypatch, capsys, tmp_path, words, message
):
    monkeypatch.chdir(tmp_path)
    code, error = run(monkeypatch, capsys, *words)
    assert code == 2
    assert message in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


DEFAULTS = {
    "flag": False,
    "count": 3,
    "share": 0.5,
    "name": "x",
    "path": "???",
    "none": None,
    "list": [1, 2],
    "empty": [],
    "inner": {"count": 1},
    "attention": {"lam": 1.0},
    "resize": [600, 1000],
}


@pytest.mark.parametrize(
    "settings",
    [
        {"flag": True},
        {"count": -7},
        {"share": 2},
        {"share": 2.5},
        {"name": "", "path": "p"},
        {"none": 5},
        {"none": {"a": 1}},
        {"list": [4]},
        {"list": []},
        {"empty": ["a", 5]},
        {"inner": {"count": 2}},
        {"attention": {"lam": {"linear": [0, 4]}, "temperature": 0.5}},
        {"resize": None},
    ],
)
def test_values_of_their_defaults_types_are_accepted(settings):
    assert list(find_problems(settings, DEFAULTS)) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"flag": 1},
        {"flag": "true"},
        {"count": True},
        {"count": 1.0},
        {"share": "0.5"},
        {"share": True},
        {"name": None},
        {"path": 5},
        {"list": [1, "a"]},
        {"list": None},
        {"inner": {"count": "a"}},
        {"inner": {"other": 1}},
        {"inner": 5},
        {"other": None},
    ],
)
def test_other_values_are_named_with_their_key(settings):
    (problem,) = find_problems(settings, DEFAULTS)
    assert next(iter(settings)) in problem


@pytest.mark.parametrize(
    "value",
    [
        "/tmp/é.json",
        "a(1).json",
        "a=b.json",
        "a'b.json",
        'a"b',
        "a\\'b",
        "é\\",
        "~/x",
        "a#b",
        "日本",
    ],
)
def test_a_value_that_the_grammar_lacks_is_quoted_to_the_letter(value):
    quoted = quote_value(f"results={value}")
    assert OverridesParser.create().parse_override(quoted).value() == value


@pytest.mark.parametrize("names", [["runs/größe", "b"], ["runs/模型"], ["a b(1)", "é"]])
def test_names_in_a_list_that_the_grammar_lacks_are_quoted_to_the_letter(names):
    quoted = quote_value(f"checkpoints=[{', '.join(names)}]")
    assert OverridesParser.create().parse_override(quoted).value() == names


@pytest.mark.parametrize(
    "word",
    [
        "a=b",
        "a.b=[1,2]",
        "a=b,c",
        "a=null",
        "~a",
        "+a=1",
        "a=[",
        "a={",
        "é",
        "a='x y'",
        "--config-dir=x",
    ],
)
def test_words_that_are_read_already_or_broken_lists_stay(word):
    assert quote_value(word) == word


def test_only_words_that_choose_a_file_are_choices():
    words = [
        "data=custom",
        "+experiment=x",
        "data.root=a",
        "name=data",
        "hydra/launcher=b",
        "~data",
    ]
    assert choose_groups(words, ["data", "experiment"]) == [words[0], words[1], *words[4:]]
