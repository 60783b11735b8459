"""make attention: what is in the file, whatever ends the command, and every mistake."""

import os
import re
import shutil
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch

import attention
from data.features.reader import FeatureStore
from data.io import disk_space
from data.io.array_file import ArrayFileWriter
from data.text.tokenizer import tokenize
from data.vqa.data_folder import DataFolder
from mcan.attention_arrays.layers import choose_layers, watch_layers
from mcan.evaluation.predict import answer_logits
from mcan.evaluation.trained_model import load_trained
from scripts import attention_arrays
from tests.small_models import QUIET, read_error, run_here
from tests.small_runs import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

LAYERS = ["encoder.0.self_attention", "decoder.0.self_attention", "decoder.0.guided_attention"]
KILLED = """
import os, signal
from data.io.array_file import ArrayFileWriter
from scripts.attention_arrays import main

commit = ArrayFileWriter.commit

def commit_or_die(self, number, checksum):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    commit(self, number, checksum)

ArrayFileWriter.commit = commit_or_die
main()
"""


def write(runs, output, *words):
    """Run the command; all arrays of its file."""
    code, printed, error = run_here(
        attention_arrays.main, f"runs={runs}", f"output={output}", *words
    )
    assert (code, error) == (0, ""), error
    assert f"{output}\n" in printed
    return read(output)


def read(path):
    """Every array of a file, and its attributes."""
    arrays = {}

    def take(name, found):
        if isinstance(found, h5py.Dataset):
            is_text = found.dtype == object
            arrays[name] = found.asstr()[:] if is_text else found[:]

    with h5py.File(path) as file:
        file.visititems(take)
        return arrays, dict(file.attrs)


def assert_same(one, other, atol=0.0):
    assert one.keys() == other.keys()
    for name, array in one.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(array, other[name], atol=atol, rtol=atol, err_msg=name)
        else:
            assert np.array_equal(array, other[name]), name


@pytest.fixture(scope="module")
def questions(small_dataset):
    return DataFolder(small_dataset).read_questions("val")


@pytest.fixture(scope="module", params=["discrete", "unimodal", "multimodal"])
def written(request, runs_of_every_head, tmp_path_factory):
    """A head's name, its arrays with all layers, and the attributes."""
    output = tmp_path_factory.mktemp("written") / "val.h5"
    words = [f"checkpoint={request.param}", "layers=all", "layer_dtype=float32", "num_answers=3"]
    return request.param, *write(runs_of_every_head, output, *words)


@torch.inference_mode()
def ask_alone(trained, store, question):
    """All that the file has of one question, from a batch of that question alone."""
    image_id, text = question
    height, width = store.size(image_id)
    layers = {}
    with watch_layers(
        trained.model, LAYERS, lambda name, rows, weights: layers.update({name: weights[0]}), None
    ):
        pooled, attended = trained.model.attend(
            torch.from_numpy(store.rows(image_id).copy())[None],
            attention.Grid.of([(height, width)]),
            torch.tensor([trained.words.encode(text)]),
        )
    probabilities = answer_logits(trained.model, pooled, attended.context)[0].sigmoid()
    return layers, attended, probabilities.numpy()


def test_every_row_is_what_the_model_gives_for_its_question_alone(
    written, runs_of_every_head, questions, small_dataset
):
    head, arrays, attributes = written
    trained = load_trained(runs_of_every_head / head)
    assert (attributes["head"], attributes["split"]) == (head, "val")
    assert np.array_equal(arrays["question_ids"], questions.ids)
    assert np.array_equal(arrays["image_ids"], questions.image_ids)
    assert arrays["questions"].tolist() == questions.texts
    assert arrays["answer_list"].tolist() == list(trained.words.answers.words)
    pairs = list(zip(questions.image_ids.tolist(), questions.texts, strict=True))
    with FeatureStore(DataFolder(small_dataset).store("val")) as store:
        for row in range(0, len(questions), 7):
            layers, attended, probabilities = ask_alone(trained, store, pairs[row])
            assert_row(arrays, row, pairs[row], store, layers, attended, probabilities)


def assert_row(arrays, row, question, store, layers, attended, probabilities):
    image_id, text = question
    height, width = arrays["grid"][row]
    assert (height, width) == store.size(image_id)
    words, cells = len(tokenize(text)), height * width
    assert arrays["vocabulary"][arrays["tokens"][row]].tolist() == [
        *tokenize(text), *["PAD"] * (14 - words)
    ]  # fmt: skip
    close = {"atol": 2e-5, "rtol": 1e-4}
    np.testing.assert_allclose(arrays["image_weights"][row, :cells], attended.weights[0], **close)
    assert (arrays["image_weights"][row, cells:] == 0).all()
    assert arrays["question_weights"][row].sum() == pytest.approx(1)
    assert (arrays["question_weights"][row, words:] == 0).all()
    best = arrays["answers"][row]
    np.testing.assert_allclose(arrays["probabilities"][row], probabilities[best], **close)
    np.testing.assert_allclose(probabilities[best], np.sort(probabilities)[::-1][:3], **close)
    for name, ends in zip(LAYERS, [(words, words), (cells, cells), (cells, words)], strict=True):
        found = arrays[f"layers/{name}"][row]
        expected = layers[name].numpy()[:, : ends[0], : ends[1]]
        np.testing.assert_allclose(found[:, : ends[0], : ends[1]], expected, **close)
        assert found.sum() == pytest.approx(2 * ends[0], rel=1e-4)  # 2 heads: padding holds nothing
    if attended.mixture is not None:
        k = int(attended.mixture.num_components)
        assert arrays["mixture/num_components"][row] == k
        for name in ("pi", "mu", "sigma"):
            fitted = getattr(attended.mixture, name)[0, 0, :k]
            np.testing.assert_allclose(arrays[f"mixture/{name}"][row, :k], fitted, atol=1e-3)


def test_only_heads_with_a_mixture_and_a_choice_have_arrays_of_them(written):
    head, arrays, _ = written
    groups = {name.partition("/")[0] for name in arrays if "/" in name}
    more = {"discrete": set(), "unimodal": {"mixture"}}.get(head, {"mixture", "candidates"})
    assert groups == {"layers", *more}


def test_the_least_description_length_is_that_of_the_selected_mixture(runs_of_every_head, tmp_path):
    words = ["checkpoint=multimodal", "attention.lam=0.05"]
    arrays, attributes = write(runs_of_every_head, tmp_path / "a.h5", *words)
    selected = arrays["mixture/num_components"] - 1
    length = arrays["candidates/description_length"]
    expected = -2 * arrays["candidates/log_likelihood"] + 0.05 * np.arange(1, 5)
    np.testing.assert_allclose(length, expected)
    assert np.array_equal(length.argmin(1), selected)
    assert len(set(selected.tolist())) > 1
    rows = np.arange(len(selected))
    for name in ("pi", "mu", "sigma"):
        chosen = arrays[f"candidates/{name}"][rows, selected]
        assert np.array_equal(chosen, arrays[f"mixture/{name}"])
    assert np.array_equal(arrays["candidates/answers"][rows, selected], arrays["answers"][:, 0])
    assert '"lam": 0.05' in attributes["options"]
    assert not any(name.startswith("layers/") for name in arrays)


def test_named_questions_come_in_their_order_and_padding_changes_nothing(
    runs_of_every_head, questions, tmp_path
):
    ids = questions.ids[[40, 3, 17, 55, 8]].tolist()
    words = ["checkpoint=multimodal", f"questions={ids}", "layers=all"]
    plain, _ = write(runs_of_every_head, tmp_path / "a.h5", *words)
    mixed, _ = write(runs_of_every_head, tmp_path / "b.h5", *words, "runtime.mixing=all")
    assert plain["question_ids"].tolist() == ids
    assert len({tuple(grid) for grid in plain["grid"].tolist()}) > 1
    assert plain["layers/decoder.0.self_attention"].dtype == np.float16
    # EM multiplies the last bit of a weight
    assert_same(plain, mixed, atol=2e-3)


def test_a_killed_command_is_resumed_and_its_file_is_that_of_one_that_was_not(
    runs_of_every_head, tmp_path, monkeypatch
):
    words = ["checkpoint=multimodal", "layers=decoder", "runtime.evaluation_batch_size=10"]
    whole, _ = write(runs_of_every_head, tmp_path / "whole.h5", *words)
    path = tmp_path / "out" / "a.h5"
    places = [f"runs={runs_of_every_head}", f"output={path}"]
    command = [sys.executable, "-c", KILLED, *places, *words, *QUIET]
    killed = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert not path.exists()
    written, commit = [], ArrayFileWriter.commit

    def note_commit(self, number, checksum):
        written.append(number)
        commit(self, number, checksum)

    monkeypatch.setattr(ArrayFileWriter, "commit", note_commit)
    resumed, _ = write(runs_of_every_head, path, *words)
    assert written == list(range(3, written[-1] + 1))
    assert_same(whole, resumed)
    assert [each.name for each in path.parent.iterdir()] == ["a.h5"]


def test_an_unfinished_file_of_other_settings_is_named(runs_of_every_head, tmp_path, monkeypatch):
    words = ["checkpoint=multimodal", f"runs={runs_of_every_head}", f"output={tmp_path / 'a.h5'}"]

    def interrupt(self, number, checksum):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ArrayFileWriter, "commit", interrupt)
        assert run_here(attention_arrays.main, *words)[0] == 130
    error = read_error(attention_arrays.main, *words, "num_answers=2")
    assert "a.h5.partial was begun with num_answers 5, not 2; finish that, or delete it" in error


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["layers=[decoder.7]"],
            "there is no layer 'decoder.7'; name some of encoder.0, decoder.0",
        ),
        (["layers=encode"], "there is no layer 'encode'"),
        (["layer_dtype=int8"], "layer_dtype must be one of float16, float32"),
        (["num_answers=0"], "num_answers must be a whole number >= 1"),
        (["questions=[5]"], "the split has no question 5"),
        (["split=nowhere"], "nowhere"),
        (["data.root=/nowhere"], "there is no data in /nowhere"),
        (["attention.k_max=no"], "k_max"),
        ([f"output={__file__}/a.h5"], "is a file, not a folder"),
        ([f"output={__file__}"], "exists already; delete it or pass force=true"),
    ],
)
def test_a_mistake_ends_in_one_sentence_and_leaves_nothing(
    runs_of_every_head, tmp_path, words, problem
):
    given = ["checkpoint=multimodal", f"runs={runs_of_every_head}"]
    if not any(word.startswith("output=") for word in words):
        given.append(f"output={tmp_path / 'out' / 'a.h5'}")
    assert problem in read_error(attention_arrays.main, *given, *words)
    assert not (tmp_path / "out").exists()


def test_a_file_that_would_fill_the_disk_is_not_begun(runs_of_every_head, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=300_000)
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda path: usage)
    words = ["checkpoint=discrete", f"runs={runs_of_every_head}", f"output={tmp_path / 'a.h5'}"]
    error = read_error(attention_arrays.main, *words, "layers=all")
    assert re.search(r"a\.h5 needs 2\.\d MB in .*, but only 300\.0 kB are free", error)
    assert list(tmp_path.iterdir()) == []
    assert run_here(attention_arrays.main, *words)[0] == 0


def test_the_lines_of_the_page_read_a_file_back(runs_of_every_head, questions, tmp_path):
    page = (ROOT / "docs" / "attention_arrays.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len([line for line in program.splitlines() if line]) == 10
    words = ["checkpoint=multimodal", "layers=all"]
    arrays, _ = write(runs_of_every_head, tmp_path / "attention" / "val.h5", *words)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = arrays["answer_list"][arrays["answers"][0, 0]]
    assert done.stdout.startswith(
        f"{questions.texts[0]} {answer} ['{tokenize(questions.texts[0])[0]}'"
    )
    k = arrays["mixture/num_components"][0]
    assert f" {arrays['image_weights'][0].max()!s} {k} [" in done.stdout
    assert done.stdout.endswith("(2, 88, 14)\n")
    assert choose_layers(load_trained(runs_of_every_head / "multimodal").model, "all") == LAYERS
