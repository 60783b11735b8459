"""Very small trained models, for the commands that let a checkpoint answer."""

import contextlib
import dataclasses
import importlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw

from attention import Grid
from data.features.manifest import Manifest
from data.features.reader import FeatureStore
from data.vqa.data_folder import DataFolder
from data.vqa.questions import load_questions
from mcan.checkpoint import load_checkpoint, save_checkpoint
from mcan.evaluation.trained_model import load_trained
from scripts.cli.command import Command
from tests.small_runs import settings, train_here

QUIET = ["runtime.num_threads=1", "runtime.show_progress=false", "runtime.loader_threads=0"]


def train_small(dataset: Path, runs: Path, name: str, *more: str) -> Path:
    """A run of one epoch, and its folder."""
    train_here(settings(dataset, runs, f"name={name}", "optim.epochs=1", *more))
    return runs / name


def copy_checkpoint(source: Path, target: Path, **changes: Any) -> Path:
    """A copy of a checkpoint with other contents; a value of None leaves one out."""
    content = {**load_checkpoint(source), **changes}
    save_checkpoint(target, {key: value for key, value in content.items() if value is not None})
    return target


def sharpen(run: Path, name: str | Path, factor: float = 60.0) -> Path:
    """A copy of a run whose attention is peaky and whose answers depend on what it looks at.

    A model of one epoch looks everywhere and gives one answer: it could not tell two heads apart.
    """
    content = load_checkpoint(run / "best.pt")
    weights = content["model"]
    for part in ("weight", "bias"):
        weights[f"pool_image.score_network.score.{part}"] *= factor
    weights["pool_image.merge.weight"] *= 30
    folder = run.parent / name
    save_checkpoint(folder / "best.pt", content)
    # what all questions have in common is taken off, so that what differs decides
    pooled = []
    trained = load_trained(folder)
    trained.model.norm.register_forward_hook(lambda module, inputs, output: pooled.append(output))
    split = DataFolder(trained.config["data"]["root"])
    questions = load_questions([split.questions("val")])
    store = FeatureStore(split.store("val"))
    with torch.inference_mode():
        for image_id, text in zip(questions.image_ids.tolist(), questions.texts, strict=True):
            tokens = torch.tensor([trained.words.encode(text)])
            features = torch.from_numpy(store.rows(image_id).copy())[None]
            trained.model(features, Grid.of([store.size(image_id)]), tokens)
    store.close()
    weights["classify.bias"] = -(weights["classify.weight"] @ torch.cat(pooled).mean(0)).clone()
    save_checkpoint(folder / "best.pt", content)
    return folder


def copy_with_head(run: Path, folder: Path, head: str) -> None:
    """A copy of a run whose checkpoint says that it was trained with another head."""
    options = compose("train", [f"attention={head}"]).attention
    copy_checkpoint(run / "best.pt", folder / "best.pt", attention=options)


def change_features(
    run: Path, folder: Path, backbone: str, num_features: int | None = None, **changes: Any
) -> Path:
    """A copy of a checkpoint that says it was trained on other features."""
    content = load_checkpoint(run / "best.pt")
    manifest = Manifest.parse(content["manifest"], run)
    content["manifest"] = dataclasses.replace(manifest, backbone=backbone, **changes).dump()
    if num_features:
        content["sizes"] = {**content["sizes"], "num_features": num_features}
        hidden = content["sizes"]["hidden"]
        content["model"]["project_features.weight"] = torch.randn(hidden, num_features) / 100
    save_checkpoint(folder / "best.pt", content)
    return folder


def draw_picture(
    size: tuple[int, int] = (300, 200), background: tuple[int, ...] = (255, 255, 255, 255)
) -> Image.Image:
    """What a user might draw: a red circle and a blue square."""
    picture = Image.new("RGBA", size, background)
    pen = ImageDraw.Draw(picture)
    pen.ellipse([20, 20, 80, 80], fill=(220, 30, 30, 255))
    pen.rectangle([size[0] - 90, size[1] - 90, size[0] - 30, size[1] - 30], fill=(30, 60, 220, 255))
    return picture


def find_command(name: str) -> Command[Any]:
    """The command of scripts/<name>.py or of the package scripts/<name>/."""
    module = importlib.import_module(f"scripts.{name}")
    if hasattr(module, "__path__"):
        module = importlib.import_module(f"scripts.{name}.__main__")
    found: Command[Any] = module.main
    return found


def compose(name: str, overrides: list[str]) -> Any:
    """The settings of a command, as it gets them."""
    (composed,) = find_command(name).compose([*overrides, *QUIET])
    return composed


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


def read_error(main: Callable[[], None], *overrides: str, quiet: list[str] = QUIET) -> str:
    """The one sentence with which a command in this process rejects what it was given."""
    code, printed, error = run_here(main, *overrides, quiet=quiet)
    assert (code, error.count("\n")) == (2, 1), error
    assert all(line.startswith("WARNING: ") for line in printed.splitlines()), printed
    assert error.startswith("error: ")
    return error


def listing(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and what is in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
