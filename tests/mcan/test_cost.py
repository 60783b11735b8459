"""The cost of a step, against the CPU, hand counts and torch's own autocast."""

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import binary_cross_entropy_with_logits

import attention
import mcan
from attention import Grid
from mcan.cost import Batch, SavedTensors, count_evaluation_batch, count_head, count_training_step
from mcan.gpu_kernels import GPUKernels
from mcan.operations import OperationLog, add_bytes, add_flops

TINY = mcan.Sizes(
    num_words=30, num_answers=11, num_features=7, embedding=12, hidden=16, num_layers=2,
    num_heads=4, pooling=16, output=32,
)  # fmt: skip
SMALL = mcan.Sizes(num_words=20000, num_answers=3129, num_features=2048)
BATCH = Batch(6, (8, 10))
META = torch.device("meta")


def make(sizes=TINY, head="multimodal", device="meta", **options):
    with torch.device(device):
        return mcan.MCAN(sizes, attention.build(head, **options))


def plain_step(model, device, batch=BATCH):
    """A step without imitated kernels: its operations, and the bytes that autograd keeps."""
    features = torch.zeros(batch.num_questions, batch.num_cells, 7, device=device)
    tokens = torch.ones(batch.num_questions, 14, dtype=torch.int64, device=device)
    grid = Grid.of([batch.grid] * batch.num_questions, device=device)
    model(features, grid, tokens, num_components=4)  # what is kept for a grid is there now
    log, saved = OperationLog(str(device)), SavedTensors([*model.parameters(), features])
    with log, saved, sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
        logits = model(features, grid, tokens, num_components=4)
        binary_cross_entropy_with_logits(logits, torch.zeros_like(logits)).backward()
    return log.operations, saved.num_bytes


def test_a_step_on_meta_has_the_arithmetic_and_the_memory_of_the_step_on_a_cpu():
    model = make(device="cpu")
    on_cpu, kept_on_cpu = plain_step(model, "cpu")
    on_meta, kept_on_meta = plain_step(model.to("meta"), "meta")
    assert add_flops(on_meta) == add_flops(on_cpu) > 0
    assert kept_on_meta == pytest.approx(kept_on_cpu, rel=0.001)


def test_fused_kernels_add_one_product_to_each_attention_of_the_backward_pass():
    plain, _ = plain_step(make(), "meta")
    fused = count_training_step(make(), BATCH)
    questions, cells, words = 6, 80, 14
    pairs = 2 * (words * words + cells * cells + cells * words)  # of two layers each
    again = 2 * questions * pairs * TINY.hidden
    assert add_flops(fused.operations) == add_flops(plain) + again


def test_fused_attention_keeps_no_matrix():
    _, plain = plain_step(make(), "meta")
    fused = count_training_step(make(), BATCH).activation_bytes
    matrices = 2 * 6 * 4 * 80 * 80 * 4
    assert fused < plain - matrices


def test_what_a_linear_layer_and_dropout_keep_is_counted_by_hand():
    layers = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5), nn.Linear(4, 2)).to("meta")
    x = torch.empty(3, 8, device=META)
    saved = SavedTensors([*layers.parameters(), x])
    with saved, GPUKernels(layers, torch.float32):
        layers(x)
    assert saved.num_bytes == 3 * 4 * 4 + 3 * 4  # the second layer's input, a byte for each mask
    saved = SavedTensors([*layers.parameters(), x])
    with saved, GPUKernels(layers, torch.bfloat16):
        layers(x)
    # x in 16 bits, its mask, the second layer's input; both weights in 16 bits where needed
    assert saved.num_bytes == 2 * (3 * 8) + 3 * 4 + 2 * (3 * 4) + 2 * (4 * 2)


def test_imitated_autocast_gives_the_dtypes_of_torchs_own():
    model = make(device="cpu", head="multimodal")
    grid = Grid.of([(8, 10)] * 2)
    features, tokens = torch.zeros(2, 80, 7), torch.ones(2, 14, dtype=torch.int64)

    def dtypes(model, *inputs):
        seen = {}
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):
                hook = lambda m, i, out, name=name: seen.update({name: out.dtype})  # noqa: E731
                module.register_forward_hook(hook)
        model(*inputs)
        return seen

    with torch.autocast("cpu", dtype=torch.bfloat16):
        real = dtypes(model, features, grid, tokens)
    model = model.to("meta")
    with GPUKernels(model, torch.bfloat16):
        imitated = dtypes(model, features.to("meta"), grid.to(META), tokens.to("meta"))
    assert imitated == real
    assert set(real.values()) == {torch.bfloat16, torch.float32}


def test_the_paper_model_has_57_64_million_parameters_and_the_expected_arithmetic():
    cost = count_training_step(make(SMALL), Batch(2, (19, 25)))
    assert cost.num_parameters == pytest.approx(57.64e6, abs=0.005e6)
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
    assert add_flops(cost.operations) == pytest.approx(expected, rel=0.002)


def test_more_questions_cost_in_proportion_but_the_update_stays():
    model = make()
    one, two = (count_training_step(model, Batch(n, (8, 10))) for n in (8, 16))
    assert add_flops(two.operations) == 2 * add_flops(one.operations)
    assert two.feature_bytes == 2 * one.feature_bytes == 16 * 80 * 7 * 2
    assert add_bytes(two.operations) < 2 * add_bytes(one.operations)
    assert two.activation_bytes == pytest.approx(2 * one.activation_bytes, rel=0.1)


def test_micro_batches_repeat_all_but_the_update_and_need_no_more_memory():
    model = make()
    once, twice = (count_training_step(model, BATCH, num_micro_batches=n) for n in (1, 2))
    assert len(twice.operations) == 2 * len(once.operations) - 2
    assert add_flops(twice.operations) == 2 * add_flops(once.operations)
    assert twice.memory_bytes() == once.memory_bytes()


def test_several_processes_need_buckets_for_gradients():
    cost = count_training_step(make(), BATCH)
    assert cost.memory_bytes(2) - cost.memory_bytes(1) == 4 * cost.num_parameters


@pytest.mark.parametrize("head", attention.available())
def test_every_head_is_counted_in_training_and_at_test_time(head):
    model = make(head=head)
    assert add_flops(count_training_step(model, BATCH, torch.bfloat16).operations) > 0
    assert add_flops(count_evaluation_batch(model, Batch(6, (8, 10), 2), torch.bfloat16)) > 0
    assert next(model.parameters()).grad is None


def test_the_multimodal_head_does_more_than_the_discrete_one_in_float64():
    heads = {
        name: count_head(make(head=name).train(), BATCH) for name in ("discrete", "multimodal")
    }
    assert len(heads["multimodal"]) > 10 * len(heads["discrete"])
    products = [each for each in heads["multimodal"] if each.flops]
    assert torch.float64 in {each.dtype for each in products}
    assert add_flops(heads["discrete"]) == 3 * (2 * 6 * 80 * TINY.hidden)
