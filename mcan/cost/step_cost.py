"""What a training step and an evaluation batch take, counted from the model itself.

The model runs on `device="meta"`, where tensors have shapes and no numbers, and every operation is
recorded. Nothing is measured here, and nothing is a formula of the architecture.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from attention import Grid
from mcan.cost.gpu_kernels import GPUKernels
from mcan.cost.operations import Operation, OperationLog
from mcan.network.model import MCAN, count_parameters
from mcan.runtime.precision import choose_dtype
from mcan.runtime.settings import Precision

META = torch.device("meta")
CHECKPOINT_BYTES = 12  # per parameter: the weight and Adam's two moments


@dataclass(frozen=True)
class Cost:
    """The kernels of one process, and the memory that they need."""

    operations: tuple[Operation, ...]
    memory_bytes: int

    def totals(self) -> dict[str, int]:
        """Totals over all kernels, and the memory."""
        return {
            "flops": sum(each.flops for each in self.operations),
            "bytes": sum(each.num_bytes for each in self.operations),
            "kernels": len(self.operations),
            "memory_bytes": self.memory_bytes,
        }


def choose_gpu_dtype(precision: Precision) -> torch.dtype:
    """The dtype of a step on a GPU, where "auto" is bfloat16."""
    return choose_dtype("bfloat16" if precision == "auto" else precision, META)


def count_training_step(
    model: MCAN,
    batch_size: int,
    grid: tuple[int, int],
    question_length: int,
    dtype: torch.dtype = torch.float32,
    num_processes: int = 1,
    num_micro_batches: int = 1,
) -> Cost:
    """One process's share of a step, with the head's largest number of components."""
    model = prepare(model, grid, training=True)
    num_parameters = count_parameters(model)
    num_questions = -(-batch_size // (num_processes * num_micro_batches))
    log = OperationLog(known=model.parameters())
    for _ in range(num_micro_batches):
        with log, GPUKernels(dtype):
            inputs = make_inputs(model, num_questions, num_questions, grid, question_length)
            targets = torch.empty(num_questions, model.sizes.num_answers, device=META)
            logits = model(*inputs, getattr(model.pool_image.head, "k_max", None))
            loss = binary_cross_entropy_with_logits(logits.float(), targets, reduction="sum")
            loss.backward()
    update = [  # fused Adam has no kernel on `meta`: it reads four numbers and writes three
        Operation("norm", 0, 4 * num_parameters, torch.float32),
        Operation("fused_adam", 0, 28 * num_parameters, torch.float32),
    ]
    state = 12 if num_processes == 1 else 16  # weight, two moments; DDP's copy of the gradient
    return Cost((*log.operations, *update), state * num_parameters + log.peak_bytes)


@torch.no_grad()
def count_evaluation_batch(
    model: MCAN,
    num_questions: int,
    num_images: int,
    grid: tuple[int, int],
    question_length: int,
    dtype: torch.dtype = torch.float32,
) -> Cost:
    """Answers to one batch with the test-time head; its questions share their images."""
    model = prepare(model, grid, training=False)
    index = torch.arange(num_questions) * num_images // num_questions
    log = OperationLog(known=model.parameters())
    with log:
        inputs = make_inputs(model, num_questions, num_images, grid, question_length)
        with GPUKernels(dtype):
            question, attended = model.attend(*inputs, image_index=index)
        model.answer(question.float(), attended.context.float()).max(1)
    return Cost(tuple(log.operations), 4 * count_parameters(model) + log.peak_bytes)


def make_inputs(
    model: MCAN, num_questions: int, num_images: int, size: tuple[int, int], question_length: int
) -> tuple[Tensor, Grid, Tensor]:
    """Features, grid and tokens without numbers."""
    grid = Grid.of([size] * num_questions, device=META)
    shape = num_images, grid.num_cells, model.sizes.num_features
    features = torch.empty(shape, dtype=torch.float16, device=META)
    tokens = torch.empty(num_questions, question_length, dtype=torch.int64, device=META)
    return features, grid, tokens


def prepare(model: MCAN, size: tuple[int, int], training: bool) -> MCAN:
    """A copy on `meta` whose head has what it computes once per grid, not at every step."""
    model = copy.deepcopy(model).to(META).train(training)
    grid = Grid.of([size], device=META)
    scores = torch.empty(1, grid.num_cells, device=META)
    model.pool_image.head(scores, scores[..., None], grid)
    return model
