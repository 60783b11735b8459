"""Very small trained models, for the commands that let a checkpoint answer."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hydra
import torch
from omegaconf import DictConfig

from attention import Grid
from data.questions import load_questions
from data.splits import Folder
from data.store import FeatureStore
from mcan.checkpoint import load_checkpoint, save_checkpoint
from scripts.trained import load_trained
from tests.small_runs import ROOT, settings, train_here

QUIET = ["runtime.num_threads=1", "runtime.show_progress=false", "runtime.loader_threads=0"]


def train_small(dataset: Path, runs: Path, name: str, *more: str) -> Path:
    """A run of one epoch, and its folder."""
    words = settings(dataset, runs, f"name={name}", "optim.epochs=1", *more)
    if not any(word == "attention=multimodal" for word in more):
        words.remove("attention=multimodal")
        words.remove("attention.num_restarts=1")
    train_here(words)
    return runs / name


def sharpen(run: Path, name: str, factor: float = 60.0) -> Path:
    """A copy of a run whose attention is peaky and whose answers depend on what it looks at.

    A model of one epoch looks everywhere and gives one answer: it could not tell two heads apart.
    """
    content = load_checkpoint(run / "best.pt")
    weights = content["model"]
    for part in ("weight", "bias"):
        weights[f"pool_image.score_network.score.{part}"] *= factor
    weights["pool_image.merge.weight"] *= 30
    folder = run.parent / name
    folder.mkdir()
    save_checkpoint(folder / "best.pt", content)
    # what all questions have in common is taken off, so that what differs decides
    pooled = []
    trained = load_trained(folder)
    trained.model.norm.register_forward_hook(lambda module, inputs, output: pooled.append(output))
    split = Folder(trained.config["data"]["root"])
    questions = load_questions([split.questions("val")])
    store = FeatureStore(split.store("val"))
    with torch.inference_mode():
        for image_id, text in zip(questions.image_ids.tolist(), questions.texts, strict=True):
            tokens = torch.tensor([trained.words.vocabulary.encode(text, 14)])
            features = torch.from_numpy(store.rows(image_id).copy())[None]
            trained.model(features, Grid.of([store.size(image_id)]), tokens)
    store.close()
    weights["classify.bias"] = -(weights["classify.weight"] @ torch.cat(pooled).mean(0)).clone()
    save_checkpoint(folder / "best.pt", content)
    return folder


def compose(command: str, overrides: list[str]) -> DictConfig:
    with hydra.initialize_config_module("configs", version_base="1.3"):
        return hydra.compose(command, [*overrides, *QUIET])


def run_here(
    main: Callable[[], None], *overrides: str, quiet: list[str] = QUIET
) -> tuple[int, str, str]:
    """A command in this process: its exit code, what it printed, and its error."""
    before, num_threads = sys.argv, torch.get_num_threads()
    sys.argv = ["command", *overrides, *quiet]
    printed, error, code = io.StringIO(), io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(error):
            main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
        torch.set_num_threads(num_threads)
    return code, printed.getvalue(), error.getvalue()


def run_there(command: str, *overrides: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", f"scripts.{command}", *overrides, *QUIET],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def listing(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and what is in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
