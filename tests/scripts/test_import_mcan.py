"""Published files become checkpoints that are brought back, asked and trained on."""

import functools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import attention
from data.text.word_lists import Words, prepare_words
from data.vqa.data_folder import DataFolder
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from mcan.published.weights import rename
from scripts import import_mcan
from tests.data.vqa.official_files import make_question, write_questions
from tests.small_models import read_error, run_here
from tests.small_runs import settings, train_here

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "mcan_tiny.npz")
HEADS, NUM_WORDS, NUM_ANSWERS = (int(GOLDEN["config"][n]) for n in (1, 3, 4))
NAMES = [name.removeprefix("state/") for name in GOLDEN if name.startswith("state/")]
SIZES = [(5, 6), (2, 13), (2, 11)]  # the golden images: all-zero rows are padding

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def golden_state(prefix=""):
    return {f"{prefix}{name}": torch.tensor(GOLDEN[f"state/{name}"]).float() for name in NAMES}


def write_published(path, state):
    """A file as mcan-vqa leaves it behind."""
    parameters = [torch.nn.Parameter(tensor) for tensor in state.values()]
    optimizer = torch.optim.Adam(parameters).state_dict()
    torch.save({"state_dict": state, "optimizer": optimizer, "lr_base": 1e-4}, path)
    return path


def write_words(folder, words, answers):
    """token_to_ix.json and answer_dict.json as mcan-vqa has them."""
    numbers = [{word: number for number, word in enumerate(each)} for each in (words, answers)]
    (folder / "tokens.json").write_text(json.dumps(numbers[0]))
    names = {str(number): word for word, number in numbers[1].items()}
    (folder / "answers.json").write_text(json.dumps([numbers[1], names]))
    return [f"tokens={folder / 'tokens.json'}", f"answers={folder / 'answers.json'}"]


def write_texts(path, texts):
    """A question file with these texts."""
    write_questions(path, [make_question(1, text) for text in texts])
    return str(path)


@pytest.fixture
def published(tmp_path):
    return write_published(tmp_path / "epoch13.pkl", golden_state())


@pytest.fixture
def words(tmp_path):
    known = ["PAD", "UNK", *(f"word{n}" for n in range(NUM_WORDS - 2))]
    return write_words(tmp_path, known, [f"answer {n}" for n in range(NUM_ANSWERS)])


@functools.cache
def compose(*overrides):
    words = ["checkpoint=x", "output=y", f"num_heads={HEADS}"]
    (composed,) = import_mcan.main.compose([*words, *overrides])
    return composed


def run(checkpoint, output, *words, **more):
    """Import with the settings `key=value` of a command line: what it says, as one text."""
    given = dict(word.split("=", 1) for word in words)
    changed = {"checkpoint": str(checkpoint), "output": str(output), **given, **more}
    return "\n".join(import_mcan.import_file(replace(compose(), **changed)))


def probabilities(model):
    inputs = torch.tensor(GOLDEN["image"]).float(), attention.Grid.of(SIZES)
    with torch.no_grad():
        return model(*inputs, torch.tensor(GOLDEN["question"])).sigmoid()


@pytest.mark.parametrize("form", ["mcan-vqa", "bare", "data parallel", "openvqa", "old file"])
def test_an_imported_model_gives_the_published_probabilities(tmp_path, words, form):
    path, output = tmp_path / "published.pkl", tmp_path / "runs" / "mcan.pt"
    state = golden_state("module." if form == "data parallel" else "")
    if form == "openvqa":
        state = {n.replace("img_feat_linear", "adapter.frcn_linear"): t for n, t in state.items()}
    if form in ("bare", "old file"):
        torch.save(state, path, _use_new_zipfile_serialization=form == "bare")
    else:
        write_published(path, state)
    assert str(output) in run(path, output, *words)
    trained = load_trained(output)
    np.testing.assert_allclose(probabilities(trained.model), GOLDEN["probabilities"], atol=1e-5)
    assert trained.words.vocabulary.words[:3] == ("PAD", "UNK", "word0")
    assert trained.words.answers.words[:2] == ("answer 0", "answer 1")
    assert (trained.options, trained.train_split) == (
        {"name": "discrete", "validate": False, "normaliser": "softmax"},
        "train+val",
    )
    assert trained.manifest.backbone == "bottom-up-attention"
    assert trained.epoch == 13


def test_words_are_numbered_anew_from_the_question_files(tmp_path, published, words):
    """mcan-vqa keeps no file of them: it numbers words in the order in which they occur."""
    order = [f"word{n}" for n in range(NUM_WORDS - 2)]
    texts = [f"{order[0]}, {order[1].upper()}?", *order[2:], f"{order[3]}/{order[0]}"]
    files = [
        write_texts(tmp_path / "train.json", texts[:4]),
        write_texts(tmp_path / "val.json", texts[4:]),
    ]
    run(published, tmp_path / "a.pt", words[1], questions=files)
    run(published, tmp_path / "b.pt", *words)
    contents = [load_checkpoint(tmp_path / name)["vocabulary"] for name in ("a.pt", "b.pt")]
    assert contents[0] == contents[1]
    with pytest.raises(ValueError, match=f"train.json numbers .* the weights know {NUM_WORDS}"):
        run(published, tmp_path / "c.pt", words[1], questions=files[:1])


def test_openvqas_third_special_word_is_counted(tmp_path, published, words):
    file = write_texts(tmp_path / "all.json", [f"word{n}" for n in range(NUM_WORDS - 3)])
    run(published, tmp_path / "a.pt", words[1], questions=[file])
    known = load_trained(tmp_path / "a.pt").words.vocabulary
    assert known.words[:4] == ("PAD", "UNK", "CLS", "word0")
    assert known.encode("CLS word0", 3) == [1, 3, 0]


def test_without_words_the_weights_are_there_and_a_question_is_rejected(tmp_path, published):
    assert "it carries no words" in run(published, tmp_path / "bare.pt")
    assert load_checkpoint(tmp_path / "bare.pt")["sizes"]["num_words"] == NUM_WORDS
    with pytest.raises(ValueError, match=r"bare\.pt carries no vocabulary and answers"):
        load_trained(tmp_path / "bare.pt")


def test_a_model_may_be_imported_under_another_head(tmp_path, published, words):
    head = compose("attention=multimodal", "attention.lam=0.5", "attention.k_max=2").attention
    run(published, tmp_path / "m.pt", *words, attention=head)
    trained = load_trained(tmp_path / "m.pt")
    assert (trained.options["name"], trained.model.pool_image.head.lam) == ("multimodal", 0.5)
    assert probabilities(trained.model).isfinite().all()


def disguise(content, order, places):
    """Weights under MCAN's names, its words and answers in another order."""
    weights = dict(content["model"])
    weights["embedding.weight"] = weights["embedding.weight"][order]
    for name in ("classify.weight", "classify.bias"):
        weights[name] = weights[name][places]
    state = {}
    for name in NAMES:
        if rename(name) in weights:
            size = weights[rename(name)].shape[-1]
            factor = (size / (size - 1)) ** 0.5 if name.endswith("a_2") else 1.0
            state[name] = factor * weights[rename(name)]
    assert len(state) == len(weights)
    return state


def test_rows_are_put_into_the_order_of_a_data_folder_which_can_then_be_trained_on(
    small_dataset, discrete_run, tmp_path
):
    content = load_checkpoint(discrete_run / "last.pt")
    words = Words.from_state(content, str(discrete_run))
    generator = np.random.default_rng(0)
    order = [0, 1, *(2 + generator.permutation(len(words.vocabulary) - 2)).tolist()]
    places = generator.permutation(len(words.answers)).tolist()
    published = write_published(tmp_path / "own.pkl", disguise(content, order, places))
    given = write_words(
        tmp_path,
        [words.vocabulary.words[n] for n in order],
        [words.answers.words[n] for n in places],
    )
    output = tmp_path / "imported.pt"
    more = {"num_heads": 2, "backbone": "patch", "words_of": str(small_dataset)}
    assert "words 0 and of whose" in run(published, output, *given, **more)
    imported = load_checkpoint(output)
    assert imported["vocabulary"] == content["vocabulary"]
    for name, weight in content["model"].items():
        torch.testing.assert_close(imported["model"][name], weight, atol=1e-6, rtol=1e-6, msg=name)
    still = settings(small_dataset, tmp_path, "name=tuned", "optim.epochs=1", "optim.rate.peak=0")
    train_here([*still, f"init_from={output}"])
    tuned = load_checkpoint(tmp_path / "tuned" / "last.pt")
    assert tuned["attention"]["name"] == "multimodal"
    torch.testing.assert_close(dict(tuned["model"]), dict(imported["model"]))


def test_words_and_answers_that_are_new_to_the_model_are_counted_and_harmless(
    small_dataset, tmp_path, published, words
):
    there = prepare_words(DataFolder(small_dataset))
    printed = run(published, tmp_path / "new.pt", *words, words_of=str(small_dataset))
    num_words, num_answers = len(there.vocabulary), len(there.answers)
    assert f"whose {num_words} words {num_words - 2} and" in printed
    assert f"whose {num_answers} answers {num_answers} are new" in printed
    trained = load_trained(tmp_path / "new.pt")
    embedding = torch.tensor(GOLDEN["state/embedding.weight"]).float()
    assert torch.equal(trained.model.embedding.weight[5], embedding[1])  # that of unknown words
    assert (trained.model.classify.weight == 0).all()
    assert (trained.model.classify.bias == torch.tensor(GOLDEN["state/proj.bias"]).min()).all()


def save(content):
    """Write a file that holds something else than MCAN's weights."""
    return lambda path: torch.save(content, path)


STATE = golden_state()
BROKEN = {
    "no MCAN": (save(torch.nn.Linear(2, 3).state_dict()), "are not MCAN's"),
    "a lack": (
        save({name: tensor for name, tensor in STATE.items() if name != "proj.bias"}),
        "they lack classify.bias",
    ),
    "a misfit": (save({**STATE, "proj_norm.b_2": torch.zeros(3)}), "norm.bias has the shape (3,)"),
    "whole numbers": (save({n: t.long() for n, t in STATE.items()}), "holds torch.int64"),
    "two features": (
        save({**STATE, "adapter.grid_linear.weight": torch.zeros(3, 3)}),
        "two kinds of features",
    ),
    "no file": (lambda p: None, "there is no file"),
    "no torch": (lambda p: p.write_bytes(b"not a checkpoint"), "not a file that torch can read"),
    "half": (
        lambda p: p.write_bytes(write_published(p, STATE).read_bytes()[:20000]),
        "not a file that torch can read",
    ),
    "a list": (save([torch.zeros(2)]), "holds no state dict"),
    "a tensor": (save(torch.zeros(2)), "holds no state dict"),
    "nested": (save({"model": STATE}), "holds no state dict"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_of_other_networks_are_rejected_in_one_sentence_and_nothing_is_written(
    tmp_path, name
):
    write, message = BROKEN[name]
    write(tmp_path / "broken.pkl")
    before = sorted(tmp_path.iterdir())
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)) as error:
        run(tmp_path / "broken.pkl", tmp_path / "out.pt")
    assert "broken.pkl" in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.iterdir()) == before


NOT_NUMBERED = "tokens.json must hold an object that numbers words"
TOGETHER = "tokens (or questions) and answers go together"


@pytest.mark.parametrize(
    ("change", "kept", "more", "message"),
    [
        (lambda t: {**t, "more": len(t)}, "both", {}, f"numbers {NUM_WORDS + 1} words, but the"),
        (lambda t: {**t, "PAD": 1, "UNK": 0}, "both", {}, "where MCAN has PAD and UNK"),
        (lambda t: {**t, "word0": 3}, "both", {}, "tokens.json does not number its"),
        (lambda t: {**t, "word0": "3"}, "both", {}, NOT_NUMBERED),
        (list, "both", {}, NOT_NUMBERED),
        (dict, "tokens", {}, TOGETHER),
        (dict, "answers", {}, TOGETHER),
        (dict, "none", {"words_of": "folder"}, "words_of needs them"),
        (dict, "both", {"words_of": "folder"}, "vocabulary.json; run make data"),
        (dict, "both", {"questions": ["file"]}, "tokens or questions, not both"),
        (dict, "both", {"train_split": "vg"}, "'vg' is for training alone, beside a split"),
        (dict, "both", {"num_heads": 7}, "cannot be divided among num_heads=7"),
        (dict, "both", {"attention": {"name": "mine"}}, "there is no attention head 'mine'"),
        (dict, "both", {"attention": {"name": "unimodal", "floor": "x"}}, "floor must be"),
    ],
)
def test_words_and_settings_that_do_not_fit_are_rejected(
    tmp_path, published, words, change, kept, more, message
):
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps(change(json.loads(tokens.read_text()))))
    given = [word for word in words if kept in ("both", word.partition("=")[0])]
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)) as error:
        run(published, tmp_path / "out.pt", *given, **more)
    assert "tokens.json" in str(error.value) or change is dict
    assert not (tmp_path / "out.pt").exists()


def test_an_existing_file_stays(tmp_path, published, words):
    (tmp_path / "out.pt").write_text("precious")
    before = published.read_bytes()
    for output in (tmp_path / "out.pt", published, tmp_path, tmp_path / "out.pt" / "below.pt"):
        with pytest.raises(OSError, match=str(tmp_path)):
            run(published, output, *words)
    assert (tmp_path / "out.pt").read_text() == "precious"
    assert published.read_bytes() == before


def test_the_command_imports_and_a_mistake_ends_it_with_one_sentence(tmp_path, published, words):
    arguments = [f"checkpoint={published}", f"output={tmp_path}/out.pt", f"num_heads={HEADS}"]
    code, printed, error = run_here(import_mcan.main, *arguments, *words, quiet=[])
    assert (code, error) == (0, "")
    assert "out.pt: 2 layers of 32" in printed
    error = read_error(import_mcan.main, *arguments, *words, quiet=[])
    assert "out.pt exists already" in error
