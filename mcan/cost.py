"""What a training step and an evaluation take: FLOPs, bytes and memory, counted from the model.

The model itself runs on `device="meta"`, where tensors have shapes and no numbers, and every
operation is written down. Nothing is measured here, and nothing is a formula of the architecture.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from attention import Grid
from mcan.gpu_kernels import GPUKernels
from mcan.model import MCAN, count_parameters
from mcan.operations import Operation, OperationLog
from mcan.prediction import give_logits, look
from mcan.processes import World

META = torch.device("meta")
ADAM_BYTES = 28  # a parameter: weight, gradient, two moments read; all but the gradient written
STATE_BYTES = 16  # a parameter in memory: weight, gradient, two moments, in float32
SAVED_BYTES = 12  # a parameter in a checkpoint: weight and two moments


@dataclass(frozen=True)
class Batch:
    """The size of a batch: b questions about i images of one grid."""

    num_questions: int
    grid: tuple[int, int]
    num_images: int | None = None  # None: each question has its own copy, as in training
    num_tokens: int = 14

    @property
    def num_cells(self) -> int:
        return self.grid[0] * self.grid[1]

    def feature_bytes(self, num_features: int) -> int:
        """The float16 rows that are read from the store for it."""
        num_images = self.num_questions if self.num_images is None else self.num_images
        return num_images * self.num_cells * num_features * 2


@dataclass(frozen=True)
class StepCost:
    """A training step of one process. Activations are the bytes kept for the backward pass."""

    operations: tuple[Operation, ...]
    head_operations: tuple[Operation, ...]  # those of the attention head among them
    num_parameters: int
    activation_bytes: int
    feature_bytes: int

    def memory_bytes(self, num_processes: int = 1) -> int:
        """Weights, gradients, optimizer, activations, and the features as read and in float32."""
        state = STATE_BYTES + (4 if num_processes > 1 else 0)  # DDP's buckets: gradients again
        return self.num_parameters * state + self.activation_bytes + 3 * self.feature_bytes


@dataclass(frozen=True)
class SharedBatch:
    """A batch of an evaluation without numbers in it."""

    features: Tensor
    image_index: Tensor | None
    tokens: Tensor
    question_ids: Tensor
    grid: tuple[int, int]

    def question_sizes(self) -> tuple[tuple[int, int], ...]:
        return (self.grid,) * len(self.tokens)


class SavedTensors(torch.autograd.graph.saved_tensors_hooks):
    """Adds up the memory that autograd keeps, each storage once, without the `known` tensors'."""

    def __init__(self, known: Sequence[Tensor]) -> None:
        super().__init__(self._pack, lambda tensor: tensor)
        self.known = {tensor.untyped_storage()._cdata for tensor in known}
        self.storages: dict[int, torch.UntypedStorage] = {}  # held, so that no address comes twice

    def _pack(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if tensor.device.type != "cpu" or tensor.numel() > 1:
            self.storages[storage._cdata] = storage
        return tensor

    @property
    def num_bytes(self) -> int:
        return sum(s.nbytes() for key, s in self.storages.items() if key not in self.known)


def count_training_step(
    model: MCAN, batch: Batch, dtype: torch.dtype = torch.float32, num_micro_batches: int = 1
) -> StepCost:
    """One process's step with the head's largest number of components; `batch` is a micro-batch."""
    model = copy.deepcopy(model).to(META).train()
    prepare_head(model, batch.grid)
    sizes = model.sizes
    features = torch.empty(
        batch.num_questions, batch.num_cells, sizes.num_features, dtype=torch.float16, device=META
    )
    tokens = torch.empty(batch.num_questions, batch.num_tokens, dtype=torch.int64, device=META)
    targets = torch.empty(batch.num_questions, sizes.num_answers, device=META)
    grid = Grid.of([batch.grid] * batch.num_questions, device=META)
    log, saved = OperationLog(), SavedTensors([*model.parameters(), features])
    num_components = getattr(model.pool_image.head, "k_max", None)
    with log, GPUKernels(model, dtype), saved:
        logits = model(features, grid, tokens, num_components=num_components)
        loss = binary_cross_entropy_with_logits(logits.float(), targets, reduction="sum")
        loss.backward()
    num_parameters = count_parameters(model)
    return StepCost(
        (*log.operations * num_micro_batches, *update_operations(num_parameters)),
        (*count_head(model, batch) * num_micro_batches,),
        num_parameters,
        saved.num_bytes,
        batch.feature_bytes(sizes.num_features),
    )


def update_operations(num_parameters: int) -> list[Operation]:
    """The gradient's norm and fused Adam, which has no kernel on `meta`."""
    return [
        Operation("norm", 0, 4 * num_parameters, torch.float32),
        Operation("fused_adam", 0, ADAM_BYTES * num_parameters, torch.float32),
    ]


def count_head(model: MCAN, batch: Batch) -> list[Operation]:
    """The attention head alone, forward and backward where the model trains."""
    head, hidden = model.pool_image.head, model.sizes.hidden
    num_components = getattr(head, "k_max", None) if head.training else None
    shape = (batch.num_questions, batch.num_cells)
    scores = torch.empty(shape, device=META, requires_grad=head.training)
    values = torch.empty(*shape, hidden, device=META, requires_grad=head.training)
    grid = Grid.of([batch.grid] * batch.num_questions, device=META)
    log = OperationLog()
    with log, torch.set_grad_enabled(head.training):
        context = head(scores, values, grid, num_components=num_components).context
        if head.training:
            context.sum().backward()
    return log.operations


@torch.no_grad()
def count_evaluation_batch(
    model: MCAN, batch: Batch, dtype: torch.dtype = torch.float32
) -> list[Operation]:
    """Answering one batch with the test-time head: what `predict` does to it."""
    model = copy.deepcopy(model).to(META).eval()
    prepare_head(model, batch.grid)
    num_images = batch.num_questions if batch.num_images is None else batch.num_images
    shared = SharedBatch(
        torch.empty(
            num_images, batch.num_cells, model.sizes.num_features, dtype=torch.float16, device=META
        ),
        torch.arange(batch.num_questions) * num_images // batch.num_questions,
        torch.empty(batch.num_questions, batch.num_tokens, dtype=torch.int64, device=META),
        torch.empty(batch.num_questions, dtype=torch.int64, device=META),
        batch.grid,
    )
    log = OperationLog()
    with log:
        with GPUKernels(model, dtype):
            question, attended = look(model, shared, World(0, 1, META), torch.float32)
        give_logits(model, question, attended.context).max(1)
    return log.operations


def prepare_head(model: MCAN, grid: tuple[int, int]) -> None:
    """Let the head compute what it keeps for a grid: that is done once, not at every step."""
    cells = grid[0] * grid[1]
    scores, values = torch.empty(1, cells, device=META), torch.empty(1, cells, 1, device=META)
    model.pool_image.head(scores, values, Grid.of([grid], device=META))
