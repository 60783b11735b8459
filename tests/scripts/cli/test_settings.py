"""Settings of another type, unknown ones and odd names: one sentence each, or they just work."""

import importlib
import sys

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from scripts.cli.overrides import choose_groups, quote_value


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
        ((*SCORE, "results=[a,b]"), "results must be text, not [a,b]"),
        ((*SCORE, "results=5"), "results must be text, not 5; quote it: \"results='5'\""),
        ((*SCORE, "results=r", "output=true"), "output must be text or null, not true"),
        ((*SCORE, "results=${nope}"), "'nope' not found"),
        ((*SCORE[:2], "results=''"), "score needs annotations=… results=…"),
        ((*FEATURES, "num_threads=abc"), "num_threads must be a whole number >= 0, not 'abc'"),
        ((*FEATURES, "+foo=1"), "there is no setting 'foo'"),
        ((*FEATURES, "force=no"), "force must be true or false, not 'no'"),
        ((*FEATURES, "backbone=null"), "backbone must be text, not null"),
        ((*FEATURES, "resize=abc"), "resize must be a list of 2, each a whole number"),
        ((*FEATURES, "resize=[600,0]"), "every entry of resize must be a whole number >= 1, not 0"),
        (("verify_features", "store=s", "questions=5"), "questions must be text or a list such as"),
        (("data", "data.name=foo"), "there is no dataset 'foo'"),
        (("data", "data.layout=foo"), "there is no layout of data folders 'foo'"),
        (("data", "data=5"), "Config group override must be a string"),
        (("data", "zzzz=1"), "there is no setting 'zzzz'; there are data"),
        (("bench", "parts=5"), "parts must be a list such as [a,b], not 5"),
        (("bench", "parts=[nope]"), "there is no part 'nope' to measure"),
        (("bench", "device=foo"), "there is no device 'foo'"),
        (("bench", "document=true", "toy=true"), "and not toy=true"),
        (("train", "optim.clip=0"), "optim.clip must be a number > 0 or null, not 0"),
        (("train", "optim.betas=[0.9,1.0]"), "every entry of optim.betas must be a number >= 0"),
        (("train", "model.num_heads=5"), "model.num_heads must divide hidden=32 evenly, not 5"),
        (("train", "train_split=trian"), "trian"),
        (("train", f"seed={2**63}"), f"seed must be a whole number >= 0 and < 2^63, not {2**63}"),
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
