"""Compiled layers compute what plain ones do, whatever the grid, with a handful of graphs."""

import copy
import dataclasses
import os
import shutil

import pytest
import torch
from torch._dynamo.utils import counters
from torch.nn.parallel import DistributedDataParallel

import attention
import mcan
from mcan.checkpoint import load_checkpoint
from mcan.evaluation.trained_model import load_trained
from mcan.runtime.compilation import compile_iteration, compile_layers
from mcan.runtime.distributed import open_world
from tests.mcan.runtime.compiled_models import (
    SHAPES,
    SIZES,
    assert_alike,
    batch,
    build_pair,
    counting,
    differentiate,
    own_graphs,
)
from tests.mcan.runtime.together import free_port, start_processes
from tests.small_runs import assert_same, settings, train_here, without_times

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")

CPU = torch.device("cpu")


@pytest.fixture(autouse=True, scope="module")
def _own_graphs():
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the runs: another number would need new graphs
    # what the processor says it can do it can: no trial programs need be compiled first
    with own_graphs(), torch._inductor.config.patch({"cpp.vec_isa_ok": True}):
        yield
    torch.set_num_threads(num_threads)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def words(small_dataset, runs):
    head = "attention=unimodal"  # code for EM takes a minute to generate
    return settings(small_dataset, runs, head, "model.dropout=0.0", "name=compiled")


@pytest.fixture(scope="module")
def compiled_run(words, runs):
    """A run whose layers are compiled, for training and for validation; and its graphs."""
    with counting() as made:
        train_here([*words, "runtime.compile=true"])
    return runs / "compiled", made[0]


def test_results_and_gradients_are_the_plain_ones_over_many_grids_with_the_graphs_of_a_run(
    compiled_run,
):
    """The graphs that the run made serve all twelve grids, in training and in inference."""
    models = build_pair(CPU)
    with counting() as made:
        for number, shape in enumerate(SHAPES):
            assert_alike(models, batch(number, [shape] * (2 + number % 4), CPU))
    assert compiled_run[1] == 5  # training and inference of both kinds of layer, and the trial
    assert made == [0]


def test_a_compiled_run_leaves_a_checkpoint_like_any_other(compiled_run, words, runs):
    """It is brought back plain, resumed plain, and its names are those of a plain run."""
    train_here([word if word != "name=compiled" else "name=plain" for word in words])
    contents = [load_checkpoint(runs / name / "last.pt") for name in ("compiled", "plain")]
    assert list(contents[0]["model"]) == list(contents[1]["model"])
    for name, weight in contents[1]["model"].items():
        if name.endswith("score.bias"):
            continue  # added to all scores it changes nothing: its gradient is rounding
        torch.testing.assert_close(contents[0]["model"][name], weight, atol=1e-3, rtol=1e-2)
    trained = load_trained(compiled_run[0] / "last.pt")
    assert_same(dict(trained.model.state_dict()), dict(contents[0]["model"]))
    shutil.copytree(compiled_run[0], runs / "resumed")
    again = [word if word != "name=compiled" else "name=resumed" for word in words]
    train_here([*again, "resume=true", "optim.epochs=3"])
    lines = load_checkpoint(runs / "resumed" / "last.pt")["lines"]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert_same(
        [without_times(line) for line in lines[:2]],
        [without_times(line) for line in contents[0]["lines"]],
    )


def test_every_variant_there_is_makes_six_graphs_whatever_the_grids():
    """One question alone, several, padded ones. Tracing decides: no code is generated here."""
    torch._dynamo.reset()
    compiled, _ = build_pair(CPU, "eager")
    alike = [[shape] * (2 + number % 5) for number, shape in enumerate(SHAPES)]
    alone = [[shape] for shape in SHAPES[:4]]
    padded = [[shape, (3, 3), shape] for shape in SHAPES[:4]]
    with counting() as made:
        for number, shapes in enumerate([*alike, *alone, *padded]):
            differentiate(compiled, batch(number, shapes, CPU))
            with torch.inference_mode():
                compiled.eval()(*batch(number, shapes, CPU))
    assert made == [6]
    assert not counters["graph_break"]


def count_parts_under_ddp(rank, port, file):
    """What a backend gets to compile for a training step of layers of several megabytes."""
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch._dynamo.reset()
    parts = []

    @torch._dynamo.register_backend(name="counting")
    def count(graph, inputs):
        parts.append(graph)
        return graph.forward

    with open_world("cpu", 1) as world:
        world.join()
        model = mcan.MCAN(dataclasses.replace(SIZES, hidden=512), attention.build("discrete"))
        compile_layers(model, CPU, "counting")
        DistributedDataParallel(model)(*batch(0, [(4, 5)] * 3, CPU)).sum().backward()
    file.write_text(str(len(parts)))


def test_a_layer_stays_one_graph_where_processes_train_together(tmp_path):
    start_processes(count_parts_under_ddp, (free_port(), tmp_path / "parts"), 1)
    assert (tmp_path / "parts").read_text() == "2"  # a layer of the encoder, one of the decoder


def fit(head, number, size, num_images, k):
    """Means and the gradient of the scores, at test time without one."""
    generator = torch.Generator().manual_seed(number)
    grid = attention.Grid.of([size] * num_images)
    scores = torch.randn(num_images, grid.num_cells, generator=generator).requires_grad_(k > 0)
    values = torch.randn(num_images, grid.num_cells, 3, generator=generator)
    with torch.set_grad_enabled(k > 0):
        out = head.train(k > 0)(scores, values, grid, num_components=k or None)
    if k:
        out.context.square().sum().backward()
    return out.context.detach(), out.mixture.mu.detach(), scores.grad


def test_em_is_compiled_as_one_graph_for_all_grids_and_numbers_of_components():
    torch._dynamo.reset()
    plain, compiled = attention.build("multimodal"), attention.build("multimodal")
    compiled.iterate = compile_iteration("aot_eager")
    sizes = [(8, 10), (10, 8), (6, 11), (19, 32), (1, 12)]
    with counting() as made:
        # First as many images as no other axis has entries, or those graphs would serve it alone.
        for number, (size, num_images) in enumerate(zip(sizes, (7, 5, 3, 2, 4), strict=True)):
            for k in (0, 2, 3, 4):  # 0: selected at test time
                found = fit(compiled, number, size, num_images, k)
                for one, other in zip(found, fit(plain, number, size, num_images, k), strict=True):
                    torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-6)
    assert made == [3]  # at test time one; of the first iteration and the others in training
    assert not counters["graph_break"]


def test_compiling_changes_no_name_and_no_weight_and_copies_use_their_own():
    compiled, plain = build_pair(CPU, "eager")
    assert_same(dict(compiled.state_dict()), dict(plain.state_dict()))
    assert [name for name, _ in compiled.named_modules()] == [n for n, _ in plain.named_modules()]
    copied = copy.deepcopy(compiled).eval()
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.zero_()
        logits = [model.eval()(*batch(0, [(4, 4)], CPU)) for model in (copied, compiled, plain)]
    assert (logits[0] == 0).all()
    torch.testing.assert_close(logits[1], logits[2])


def test_without_a_compiler_the_command_says_what_is_missing(words, runs):
    torch._dynamo.reset()
    without = {"cpp.cxx": (None, "/no/such/compiler"), "force_disable_caches": True}
    expected = r"runtime.compile=true needs a C\+\+ compiler .*/no/such/compiler.*; install"
    with (
        torch._inductor.config.patch(without),
        pytest.raises(ValueError, match=expected) as error,
    ):
        train_here([*words[:-1], "name=bare", "runtime.compile=true"])
    assert "\n" not in str(error.value)
    assert not (runs / "bare").exists()
