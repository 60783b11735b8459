"""Evaluation of MCAN-small with multimodal attention: ours, and as it was published.

Both answer the same questions from files in the page cache. Ours groups them by grid and reads an
image once; the published way takes them in their order, loads each one's image, pads it to 608
cells, and fits one mixture after the other. The table over λ and k_max is measured on the way.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

import mcan
from attention import Grid
from benchmarks.baseline_process import BaselineProcess
from benchmarks.matrix_products import PRODUCT, count_flops, product_shares, products
from benchmarks.measurement import Part, Row, as_measurements, ratios
from benchmarks.parts.heads import K_MAX, LAM, TEST_ITERATIONS, list_starts
from benchmarks.parts.scoring import make_entries, read_entries
from benchmarks.parts.training import MOST_CELLS, SMALL
from benchmarks.reference.plain_attention import attend_at_test_time
from benchmarks.reference.plain_mcan import PlainMCAN, find_padding
from benchmarks.sample_features import ask_questions, write_files, write_store
from benchmarks.timing import Work, interleave
from data.batching.examples import Examples
from data.batching.loader import Loader
from data.features.store_set import open_stores
from data.vqa.accuracy import score_results
from data.vqa.questions import Annotation
from mcan.evaluation.evaluation_split import iterate_split
from mcan.evaluation.evaluator import name_answers
from mcan.evaluation.every_k import answer_candidates
from mcan.evaluation.lambda_selection import LambdaTable, make_grid
from mcan.evaluation.predict import predict
from mcan.runtime.distributed import World
from mcan.runtime.settings import Runtime

NUM_LAMS = 20


@dataclass(frozen=True)
class PlainEvaluation:
    """The published model over a folder of .pth files, question by question."""

    model: PlainMCAN
    folder: Path
    examples: Examples
    batch_size: int
    num_cells: int
    device: torch.device

    @torch.no_grad()
    def __call__(self) -> Tensor:
        """The answer (Q,) to every question, in their order."""
        rows = np.arange(len(self.examples))
        batches = [rows[n : n + self.batch_size] for n in range(0, len(rows), self.batch_size)]
        return torch.cat([self.answer(batch) for batch in batches])

    def answer(self, rows: np.ndarray) -> Tensor:
        """(b,): the best answers of one batch."""
        images = [
            torch.load(self.folder / f"{n}.pth", weights_only=True)
            for n in self.examples.image_ids[rows]
        ]
        sizes = [(image.shape[2], image.shape[3]) for image in images]
        cells = [image[0].flatten(1).t() for image in images]
        padded = [pad(each, (0, 0, 0, self.num_cells - len(each))) for each in cells]
        features = torch.stack(padded).to(self.device)
        real = ~find_padding(features)[:, 0, 0]
        positions = pad(
            Grid.of(sizes, device=self.device).positions.float(),
            (0, 0, 0, self.num_cells - max(height * width for height, width in sizes)),
        )
        starts = list_starts(self.device)

        def pool(scores: Tensor, values: Tensor) -> Tensor:
            return attend_at_test_time(
                scores, values, positions, starts, TEST_ITERATIONS, LAM, real
            )[0]

        tokens = torch.from_numpy(self.examples.tokens[rows]).to(self.device)
        return self.model(features, tokens, pool).argmax(1).cpu()


@dataclass(frozen=True)
class OurEvaluation:
    """Our model over the store of the same files, as `make evaluate` and `make lambda` run it."""

    model: mcan.MCAN
    loader: Loader
    annotations: list[Annotation]
    words: list[str]
    batch_size: int
    runtime: Runtime
    world: World

    def answer(self) -> Tensor:
        """The answer (Q,) to every question, scored."""
        batches = iterate_split(self.loader, self.batch_size, self.runtime, self.world)
        predictions = predict(self.model, batches, self.world, torch.float32)
        score_results(self.annotations, name_answers(predictions, self.words))
        return predictions.answers

    def tabulate(self) -> int:
        """The number of rows of the table over λ and k_max, from one pass."""
        batches = iterate_split(self.loader, self.batch_size, self.runtime, self.world)
        candidates = answer_candidates(self.model, batches, self.world, torch.float32)
        lams = make_grid(0.05, 50, NUM_LAMS, [])
        return len(LambdaTable(candidates, self.annotations, self.words, lams).rows())


def make_evaluations(
    folder: Path, num_images: int, batch_size: int, sizes: mcan.Sizes, device: torch.device
) -> tuple[OurEvaluation, PlainEvaluation]:
    """Our evaluation and the published one, of the same files with the same weights."""
    write_files(folder / "pth", num_images, sizes.num_features)
    write_store(folder / "pth", folder / "store.h5")
    plain = make_plain(folder, num_images, batch_size, sizes, device)
    examples, weights = plain.examples, plain.model.state_dict()
    fast = mcan.from_published(weights, sizes.num_heads, "multimodal").to(device)
    loader = Loader(
        open_stores([folder / "store.h5"]),
        examples,
        sizes.num_answers,
        share_images=True,
        pin=device.type == "cuda",
    )
    ours = OurEvaluation(
        fast.eval(),
        loader,
        read_entries(make_entries(len(examples))[0]),
        [f"answer {n}" for n in range(sizes.num_answers)],
        batch_size,
        Runtime(show_progress=False),
        World(0, 1, device),
    )
    return ours, plain


def make_plain(
    folder: Path, num_images: int, batch_size: int, sizes: mcan.Sizes, device: torch.device
) -> PlainEvaluation:
    """The published model and its questions about the files there, always the same."""
    examples = ask_questions(num_images, num_words=sizes.num_words, num_answers=sizes.num_answers)
    torch.manual_seed(0)
    model = PlainMCAN(sizes).to(device).eval()
    return PlainEvaluation(model, folder / "pth", examples, batch_size, MOST_CELLS, device)


def measure(
    device: torch.device,
    rounds: int = 4,
    num_images: int = 6,
    batch_size: int = 16,
    sizes: mcan.Sizes = SMALL,
) -> Part:
    """Rows for evaluation and for the table; 6 images have 32 questions."""
    with tempfile.TemporaryDirectory(prefix="evaluation-") as name:
        setting = Path(name), num_images, batch_size, sizes, device
        ours, plain_here = make_evaluations(*setting)
        with BaselineProcess(make_plain, *setting) as plain:
            works: dict[str, Work] = {"ours": ours.answer, "table": ours.tabulate, "plain": plain}
            works[PRODUCT] = products(device)
            num_flops = count_flops(ours.answer)
            times = interleave(works, device, rounds, "evaluation")
    against = "plain MCAN: question order, same batch size, padded, image read per question"
    gain, added = ratios(times["plain"], times["ours"]), ratios(times["table"], times["ours"])
    share = product_shares(num_flops, times, "ours")
    return Part(
        [
            Row("evaluation, multimodal, questions/s", against, "≥ 2", gain),
            Row(f"table of {NUM_LAMS} λ × {K_MAX} k_max", "one plain evaluation", "≤ 1.3", added),
            Row("evaluation of MCAN-small, FLOP/s", PRODUCT, "≥ 0.6", share),
        ],
        as_measurements(f"{len(plain_here.examples)} questions", times),
    )
