"""The memory of a head: less than another copy of the features."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import attention

BATCH, SIZE, HIDDEN = 16, (19, 32), 512
VALUES = 4 * BATCH * SIZE[0] * SIZE[1] * HIDDEN  # bytes of the cells' features in float32


class LiveBytes(TorchDispatchMode):
    """The bytes of live tensors that were created inside, and their maximum."""

    def __init__(self):
        super().__init__()
        self.live, self.most, self.seen = 0, 0, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor.untyped_storage())
        return result

    def see(self, storage):
        key = storage._cdata
        if key not in self.seen:
            self.seen[key] = storage.nbytes()
            self.live += storage.nbytes()
            self.most = max(self.most, self.live)
            weakref.finalize(storage, self.forget, key)

    def forget(self, key):
        self.live -= self.seen.pop(key)


def measure(device, work):
    """The peak of bytes that `work` allocates."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with LiveBytes() as bytes_:
        work()
    return bytes_.most


@pytest.fixture
def inputs(device):
    generator = torch.Generator().manual_seed(0)
    cells = SIZE[0] * SIZE[1]
    scores = (3 * torch.randn(BATCH, cells, generator=generator)).to(device)
    values = torch.randn(BATCH, cells, HIDDEN, generator=generator).to(device)
    return scores, values, attention.Grid.of([SIZE] * BATCH, device=device)


def test_the_measurement_counts_live_tensors(device):
    def hold_two_of_three():
        first = torch.zeros(1000, 1000, device=device)
        second = first + 1
        del first
        return second * 2

    assert measure(device, hold_two_of_three) == pytest.approx(8e6, rel=0.01)


def train(head, inputs, **options):
    scores, values, grid = inputs
    leaves = scores.clone().requires_grad_(), values.detach().requires_grad_()
    head.train()(*leaves, grid, **options).context.sum().backward()


def infer(head, inputs):
    with torch.inference_mode():
        head.eval()(*inputs)


@pytest.mark.parametrize("work", [train, infer])
@pytest.mark.parametrize("name", sorted(set(attention.available()) - {"discrete"}))
def test_a_continuous_head_needs_less_than_another_copy_of_the_features(device, inputs, name, work):
    """In training with four components; at test time with every candidate's context."""
    options = {"num_components": 4} if (name, work) == ("multimodal", train) else {}
    head = attention.build(name)
    work(head, inputs, **options)  # fills the caches
    needed = measure(device, lambda: work(head, inputs, **options))
    plain = measure(device, lambda: work(attention.build("discrete"), inputs))
    assert plain < needed < plain + VALUES
