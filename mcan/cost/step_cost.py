"""What a training step takes, counted from the model itself.

The model runs on `device="meta"`, where tensors have shapes and no numbers, and every operation is
recorded. Nothing is measured here, and nothing is a formula of the architecture.
"""

import copy
from dataclasses import dataclass

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from attention import Grid, Head
from mcan.cost.gpu_kernels import GPUKernels
from mcan.cost.operations import OperationLog
from mcan.network.model import MCAN, count_parameters

META = torch.device("meta")
CHECKPOINT_BYTES = 12  # per parameter: the weight and Adam's two moments


@dataclass(frozen=True)
class Cost:
    """The work of one process, and the memory that it needs."""

    flops: int
    bytes: int
    kernels: int
    memory_bytes: int


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
    model = copy.deepcopy(model).to(META).train()
    num_parameters = count_parameters(model)
    num_questions = -(-batch_size // (num_processes * num_micro_batches))
    cells = Grid.of([grid] * num_questions, device=META)
    most = most_components(model.pool_image.head)
    scores = torch.empty(num_questions, cells.num_cells, device=META)
    model.pool_image.head(scores, scores[..., None], cells, most)  # fills what is kept per grid
    log = OperationLog(known=model.parameters())
    for _ in range(num_micro_batches):
        with log, GPUKernels(dtype):
            shape = num_questions, cells.num_cells, model.sizes.num_features
            features = torch.empty(shape, dtype=torch.float16, device=META)
            tokens = torch.empty(num_questions, question_length, dtype=torch.int64, device=META)
            targets = torch.empty(num_questions, model.sizes.num_answers, device=META)
            logits = model(features, cells, tokens, most)
            loss = binary_cross_entropy_with_logits(logits.float(), targets, reduction="sum")
            loss.backward()
    # `copy_ahead` has as many micro-batches as a step on the device beside the one that computes
    ahead = num_micro_batches * (features.nbytes + tokens.nbytes + targets.nbytes)
    # `meta` has neither the norm of the gradients nor fused Adam, which reads four numbers per
    # parameter and writes three; DDP holds a copy of the gradients
    state = CHECKPOINT_BYTES + (0 if num_processes == 1 else 4)
    return Cost(
        log.flops,
        log.num_bytes + (4 + 28) * num_parameters,
        log.kernels + 2,
        log.peak_bytes + ahead + state * num_parameters,
    )


def count_head(head: Head, grid: Grid) -> tuple[int, int]:
    """Kernels of the head alone: in a training step, forward and backward, and at test time.

    What is cached per grid is not counted. The training step has the largest number of components.
    """
    scores = torch.empty(len(grid), grid.num_cells, device=META, requires_grad=True)
    values = scores[..., None]
    was_training = head.training
    counted = []
    for training, num_components in ((True, most_components(head)), (False, None)):
        head.train(training)
        for _ in range(2):
            log = OperationLog()
            with log, torch.set_grad_enabled(training):
                context = head(scores, values, grid, num_components).context
                if training:
                    context.sum().backward()
        counted.append(log.kernels)
    head.train(was_training)
    return counted[0], counted[1]


def most_components(head: Head) -> int | None:
    """The largest K of a training step; None for a head without components."""
    return getattr(head, "k_max", None)
