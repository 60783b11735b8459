"""Mistakes in settings: one sentence each, before anything is made; odd names just work."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from scripts.cli.overrides import quote_value
from tests.scripts.mistakes import assert_one_sentence
from tests.small_models import find_command

SCORE = "score questions=q annotations=a"
FEATURES = "features source=s output=o"
HEADS = "discrete, multimodal, own, unimodal"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        # of another type, or out of range
        (f"{SCORE} results=[a,b]", "results must be text, not [a,b]"),
        (f"{SCORE} results=5", "results must be text, not 5; quote it: \"results='5'\""),
        (f"{SCORE} results=r output=true", "output must be text or null, not true"),
        (f"{SCORE} results=${{nope}}", "'nope' not found"),
        ("score questions=q results=''", "score needs annotations=… results=…"),
        (f"{FEATURES} num_threads=abc", "num_threads must be a whole number >= 0, not 'abc'"),
        (f"{FEATURES} force=no", "force must be true or false, not 'no'"),
        (f"{FEATURES} backbone=[a]", "backbone must be text or null, not [a]"),
        (f"{FEATURES} dtype=null", "dtype must be text, not null"),
        (f"{FEATURES} resize=abc", "resize must be a list of 2, each a whole number"),
        (f"{FEATURES} resize=[600,0]", "every entry of resize must be a whole number >= 1, not 0"),
        ("verify_features store=s questions=5", "questions must be text or a list such as"),
        ("bench parts=5", "parts must be a list such as [a,b], not 5\n"),
        ("train optim.clip=0", "optim.clip must be a number > 0 or null, not 0"),
        ("train runtime.timeout_minutes=inf", "timeout_minutes must be a number > 0, not inf"),
        ("train optim.betas=[0.9,1.0]", "every entry of optim.betas must be a number >= 0"),
        ("train model.num_heads=5", "model.num_heads must divide hidden=32 evenly, not 5"),
        (f"train seed={2**63}", f"seed must be a whole number >= 0 and < 2^63, not {2**63}"),
        ("train runtime.mixing=some", "runtime.mixing must be one of none, leftovers, all, not"),
        ("train name=[", "no viable alternative at input '['"),
        # a key that is not there
        (f"{FEATURES} +foo=1", "there is no setting 'foo'"),
        ("data zzzz=1", "there is no setting 'zzzz'; there are data"),
        ("train optim.epoch=3", "no setting 'optim.epoch'; did you mean 'optim.epochs'?"),
        ("evaluate checkpoint=a data=shapes", "no setting 'data'; there are data.root"),
        ("train resum=true", "there is no setting 'resum'; did you mean 'resume'?"),
        ("train optim=paper optim.rate.slop=1", "did you mean 'optim.rate.slope'?"),
        ("train attention=discrete data=vqa_v2 data.min_answers=3", "data.min_answer_count'?"),
        ("train +optim.epoch=3 resum=true", "there is no setting 'resum'; did you mean 'resume'?"),
        ("train optim.epoch=3 resum=true", "there is no setting"),
        ("train --config-dir=own experiment=bad", "no setting 'optm'; did you mean 'optim'?"),
        # a name that is not there
        ("train attention=multimodel", f"'multimodel' of the group attention; there are {HEADS}\n"),
        ("train --help attention=x/y", f"'x/y' of the group attention; there are {HEADS}\n"),
        ("train attention=x --config-dir=own", "; there are discrete, mine, multimodal, own, uni"),
        ("sweep attention=discrete,x seed=1,2", f"'x' of the group attention; there are {HEADS}\n"),
        (
            "train optim=foo",
            "'foo' of the group optim; there are mcan, paper, photos, release, shapes\n",
        ),
        ("evaluate checkpoint=a runtime=x", "'x' of the group runtime; there are default\n"),
        ("train experiment=far --config-dir=own", "no choice 'far' of the group experiment; there"),
        ("train attention=own", "attention=own needs the name of your head: attention.name=…"),
        ("train tracker=[tensorbored]", "no tracker 'tensorbored'; there are tensorboard, wandb"),
        ("train train_split=trian", "trian"),
        ("train modules=[no_such_module]", "the module 'no_such_module' named in modules="),
        ("train runtime.device=gpu", "there is no device 'gpu'"),
        ("train data=custom", "data=custom needs the folder of your data: data.root=…"),
        ("train data=custom data.root=/no/where", "no data in /no/where: give your folder with"),
        ("train data=vqa_v2 data.root=/no/where", "no data in /no/where: run make data DATA=vqa"),
        ("data data.name=foo", "there is no dataset 'foo'"),
        ("data data.layout=foo", "there is no layout of data folders 'foo'"),
        ("data data=5", "Config group override must be a string"),
        ("bench parts=[nope]", "there is no part 'nope' to measure"),
        ("bench device=foo", "there is no device 'foo'"),
        ("bench document=true toy=true", "and not toy=true"),
        # what a head or a learning rate checks itself
        ("train optim.rate={slope:1}", "optim.rate of the learning-rate schedule 'paper' needs"),
        ("train attention.k_max=0", "k_max"),
        (
            "train attention.lam={linear:[5,-1]}",
            "in epoch 5: lam must be zero or positive, not -1.0",
        ),
        ("train attention.test_iterations={steps:{1:10,3:0}}", "in epoch 3: test_iterations must"),
        ("train attention.temperature=1", "has no option 'temperature'; its options are"),
        ("train attention.lam={linear:5}", "attention.lam must be a number"),
        ("train modules=[my_head] attention=mine --config-dir=own", "'strength'"),
        # under every way to start
        ("train --multirun seed=1,1.5,abc", "seed must be a whole number >= 0 and < 2^63, not 1.5"),
        ("train -m optim.epochs=-3,2", "optim.epochs must be a whole number >= 1, not -3"),
        ("train hydra.mode=MULTIRUN seed=1,x", "seed must be a whole number >= 0 and < 2^63, not"),
        ("train --config-dir=own seed=x", "seed must be a whole number"),
        ("train --config-dir=/no/where", "there is no folder /no/where"),
        ("train --cfg=job resume=5", "resume must be true or false, not 5"),
        ("train --config-name=train runtime.precision=foo", "precision must be one of auto, float"),
    ],
)
def test_a_mistake_ends_in_one_sentence_before_anything_is_made(
    monkeypatch, tmp_path, line, sentence
):
    write_head(tmp_path, "name: mine\nstrength: 3\n")
    experiment = "# @package _global_\ndefaults: [override /optm: paper]\n"
    (tmp_path / "own" / "experiment").mkdir()
    (tmp_path / "own" / "experiment" / "bad.yaml").write_text(experiment)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    command, *words = line.split()
    assert_one_sentence(find_command(command), words, sentence)
    made = set(tmp_path.rglob("*")) - set(before)
    assert all("__pycache__" in path.parts for path in made)  # of the user's module


def write_head(folder, options):
    """A module with a user-defined head, and its config group own/attention/mine.yaml."""
    (folder / "my_head.py").write_text(
        "import attention\n\n\n"
        "@attention.register('mine')\n"
        "class Mine(attention.build('discrete').__class__):\n"
        "    def __init__(self, temperature: float = 1.0) -> None:\n"
        "        super().__init__()\n"
    )
    (folder / "own" / "attention").mkdir(parents=True)
    (folder / "own" / "attention" / "mine.yaml").write_text(options)


def test_a_config_group_of_a_users_own_is_found_and_checked_by_its_head(monkeypatch, tmp_path):
    write_head(tmp_path, "name: mine\ntemperature: 0.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = [f"--config-dir={tmp_path / 'own'}", "modules=[my_head]", "attention=mine"]
    (settings,) = find_command("train").compose(words)
    assert settings.attention == {"name": "mine", "temperature": 0.5}
    (tmp_path / "own" / "runtime").mkdir()
    (tmp_path / "own" / "runtime" / "short.yaml").write_text("limit_batches: 3\n")
    (short,) = find_command("train").compose([*words, "runtime=short", "runtime.profile=1"])
    assert (short.runtime.limit_batches, short.runtime.profile, short.runtime.keep) == (3, 1, 2)
    one, two = find_command("train").compose(["--multirun", *words, "seed=1,2"])
    assert (one.seed, two.seed) == (1, 2)


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


LEFT = [
    "a=b", "a.b=[1,2]", "a=b,c", "a=null", "~a", "+a=1", "a=[", "a={", "é", "a='x y'",
    "--config-dir=x",
]  # fmt: skip


@pytest.mark.parametrize("word", LEFT)
def test_words_that_are_read_already_or_broken_lists_stay(word):
    assert quote_value(word) == word
