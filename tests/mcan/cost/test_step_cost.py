"""The cost of a step, against the CPU, hand counts and torch's own autocast."""

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import binary_cross_entropy_with_logits

import attention
import mcan
from attention import Grid
from mcan.cost.gpu_kernels import GPUKernels
from mcan.cost.operations import OperationLog
from mcan.cost.step_cost import count_training_step

TINY = mcan.Sizes(
    num_words=30, num_answers=11, num_features=7, embedding=12, hidden=16, num_layers=2,
    num_heads=4, pooling=16, output=32,
)  # fmt: skip
SMALL = mcan.Sizes(num_words=20000, num_answers=3129, num_features=2048)
GRID, CELLS, WORDS = (8, 10), 80, 4
META = torch.device("meta")


def make(sizes=TINY, head="multimodal", device="meta", dropout=0.1):
    with torch.device(device):
        return mcan.MCAN(sizes, attention.build(head), dropout)


def step(model, num_questions=6, **options):
    return count_training_step(model, num_questions, GRID, WORDS, **options)


def plain_step(model, device, num_questions=6):
    """FLOPs and memory of a step without imitated kernels."""
    features = torch.zeros(num_questions, CELLS, 7, device=device)
    tokens = torch.ones(num_questions, WORDS, dtype=torch.int64, device=device)
    grid = Grid.of([GRID] * num_questions, device=device)
    model(features, grid, tokens, num_components=4)  # what is kept for a grid is there now
    log = OperationLog(str(device), [*model.parameters(), features])
    with log, sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
        logits = model(features, grid, tokens, num_components=4)
        binary_cross_entropy_with_logits(logits, torch.zeros_like(logits)).backward()
    return log.flops, log.peak_bytes


def test_a_step_on_meta_has_the_arithmetic_and_the_memory_of_the_step_on_a_cpu():
    model = make(device="cpu", dropout=0.0)
    flops, memory = plain_step(model, "cpu")
    flops_on_meta, memory_on_meta = plain_step(model.to("meta"), "meta")
    assert flops_on_meta == flops > 0
    assert memory_on_meta == pytest.approx(memory, rel=0.02)


def test_fused_attention_keeps_no_matrix_and_computes_one_product_again():
    flops, memory = plain_step(make(), "meta")
    fused = step(make())
    pairs = 2 * (WORDS * WORDS + CELLS * CELLS + CELLS * WORDS)  # of two layers each
    assert fused.flops == flops + 2 * 6 * pairs * TINY.hidden
    matrices = 2 * 6 * 4 * CELLS * CELLS * 4
    assert fused.memory_bytes - 12 * mcan.count_parameters(make()) < memory - matrices


def test_dropout_keeps_a_byte_for_each_number_and_autocast_casts_weights():
    layers = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5), nn.Linear(4, 2)).to("meta")
    x = torch.empty(300, 8, device=META)
    held = {}
    for dtype in (torch.float32, torch.bfloat16):
        log = OperationLog(known=[*layers.parameters(), x])
        with log, GPUKernels(dtype):
            out = layers(x)
            held[dtype] = log.live_bytes - out.nbytes
    assert held[torch.float32] == 300 * 4 * 4 + 300 * 4  # the second layer's input, the mask
    # x and the second layer's input in 16 bits, the mask, and the second weight in 16 bits
    assert held[torch.bfloat16] == 2 * (300 * 8) + 2 * (300 * 4) + 300 * 4 + 2 * (4 * 2)


def test_imitated_autocast_gives_the_dtypes_of_torchs_own():
    model = make(device="cpu")
    grid = Grid.of([GRID] * 2)
    features, tokens = torch.zeros(2, CELLS, 7), torch.ones(2, WORDS, dtype=torch.int64)

    def dtypes(model, *inputs):
        seen = {}
        for name, module in model.named_modules():
            if isinstance(module, (nn.Linear, nn.LayerNorm)) and not name.endswith(".score"):
                hook = lambda m, i, out, name=name: seen.update({name: out.dtype})  # noqa: E731
                module.register_forward_hook(hook)
        model(*inputs)
        return seen

    with torch.autocast("cpu", dtype=torch.bfloat16):
        real = dtypes(model, features, grid, tokens)
    model = model.to("meta")
    with GPUKernels(torch.bfloat16):
        imitated = dtypes(model, features.to("meta"), grid.to(META), tokens.to("meta"))
    assert {n: t for n, t in imitated.items() if "norm" not in n} == {
        n: t for n, t in real.items() if "norm" not in n
    }
    assert {t for n, t in imitated.items() if "norm" in n} == {torch.float32}  # as on CUDA


def test_the_paper_model_has_57_64_million_parameters_and_the_expected_arithmetic():
    model = make(SMALL)
    assert mcan.count_parameters(model) == pytest.approx(57.64e6, abs=0.005e6)
    cells, words, hidden = 475, 14, 512
    decoder = 6 * 14 * hidden**2 * cells  # 4 + 2 projections of cells, 8 of the feed-forward
    question = 6 * (12 + 2) * hidden**2 * words + 4 * hidden * (300 + hidden) * words
    scores = hidden**2 * (cells + words)
    features = 2048 * hidden * cells
    linear = decoder + question + scores + features + 1024 * 3129
    attended = 6 * 2 * hidden * (cells**2 + cells * words + words**2)
    # forward once, backward twice, but features have no gradient; fused attention computes half of
    # its forward pass again
    expected = 2 * 2 * (3 * linear - features + 3.5 * attended)
    counted = count_training_step(model, 2, (19, 25), words)
    assert counted.flops == pytest.approx(expected, rel=0.002)


def test_more_questions_cost_in_proportion_but_the_update_stays():
    one, two = (step(make(), n) for n in (8, 16))
    assert two.flops == 2 * one.flops
    assert one.bytes < two.bytes < 2 * one.bytes
    assert one.kernels == two.kernels


def test_memory_holds_the_micro_batches_that_are_copied_ahead():
    two, three = step(make(), 12, num_micro_batches=2), step(make(), 18, num_micro_batches=3)
    features, tokens, targets = CELLS * TINY.num_features * 2, WORDS * 8, TINY.num_answers * 4
    assert three.memory_bytes - two.memory_bytes == 6 * (features + tokens + targets)


def test_processes_share_a_batch_and_micro_batches_save_memory():
    model = make()
    whole, half = step(model, 16), step(model, 16, num_micro_batches=2)
    assert half.flops == whole.flops
    assert half.kernels > 1.9 * whole.kernels
    assert half.memory_bytes < 0.7 * whole.memory_bytes
    shared = step(model, 16, num_processes=2)
    assert 2 * shared.flops == whole.flops
    buckets = 4 * mcan.count_parameters(model)
    assert shared.memory_bytes - buckets == step(model, 8).memory_bytes


@pytest.mark.parametrize("head", attention.available())
def test_every_head_is_counted(head):
    model = make(head=head)
    kernels = step(model, dtype=torch.bfloat16).kernels
    assert next(model.parameters()).grad is None
    discrete = step(make(head="discrete"), dtype=torch.bfloat16).kernels
    assert kernels == discrete if head == "discrete" else kernels > discrete + 50
