"""A trained model, brought back from its checkpoint with the words it knows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import attention
from data.manifest import Manifest
from data.words import Words
from mcan import MCAN, Sizes
from mcan.checkpoint import load_checkpoint
from mcan.published import infer_sizes
from scripts.model import build_head, fill_model, head_schedules


@dataclass(frozen=True)
class Trained:
    """All that a checkpoint says, ready for use: the model is in evaluation mode."""

    path: Path
    name: str  # the run's
    model: MCAN
    words: Words
    options: dict[str, Any]  # of the attention head, as they are in force now
    config: dict[str, Any]  # of the run that trained it
    manifest: Manifest  # of the features it was trained on
    train_split: str
    epoch: int  # epochs that were trained to the end

    def refuse_features(self, num_features: int, backbone: str, source: str | Path) -> None:
        """Raise when features of this width or backbone are not what the model was trained on."""
        trained = self.model.sizes.num_features, self.manifest.backbone
        if (num_features, backbone) != trained:
            raise ValueError(
                f"{source} holds {num_features} features a cell of backbone {backbone}, but "
                f"{self.path} was trained on {trained[0]} of backbone {trained[1]}"
            )


def load_trained(
    path: str | Path,
    device: torch.device | str = "cpu",
    changed: dict[str, Any] | None = None,
) -> Trained:
    """Rebuild the model of a checkpoint, or of the best one of a run's folder.

    `changed` holds options of the attention head to replace: they act at test time.
    """
    path = find_checkpoint(Path(path))
    content = load_checkpoint(path)
    try:
        trained = rebuild(content, path, changed or {})
    except (LookupError, TypeError, AttributeError, RuntimeError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        raise ValueError(
            f"{path} was not written by this project's training, or was changed since ({reason})"
        ) from None
    except ValueError as error:
        raise ValueError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    trained.model.to(device)
    return trained


def rebuild(content: dict[str, Any], path: Path, changed: dict[str, Any]) -> Trained:
    """The model of a checkpoint's content; nothing in its config is resolved or imported."""
    words = Words.from_state(content, str(path))
    options, epoch = settled_options(content, path)
    for name, value in changed.items():
        if name not in options:
            raise ValueError(
                f"attention.{name} is no option of the {options['name']} head of {path}, which "
                f"has {', '.join(sorted(options))}"
            )
        options[name] = value
    sizes = Sizes(**content["sizes"])
    refuse_other_words(words, sizes, path)
    if infer_sizes(content["model"], sizes.num_heads) != sizes:  # before room is made for them
        raise ValueError(f"{path} has another architecture than the sizes that it names")
    model = MCAN(sizes, build_head(options, {}))
    fill_model(model, content["model"], str(path))
    return Trained(
        path,
        name_run(path),
        model.eval(),
        words,
        options,
        content["config"],
        Manifest.parse(content["manifest"], path),
        content["train_split"],
        epoch,
    )


def find_checkpoint(path: Path) -> Path:
    """The checkpoint itself, or the best one of a run's folder."""
    if not path.is_dir():
        return path
    if not (path / "best.pt").is_file():
        raise FileNotFoundError(f"{path} holds no best.pt; name a checkpoint, or let a run finish")
    return path / "best.pt"


def name_run(path: Path) -> str:
    """The name of the run that a checkpoint belongs to, or its own where it stands alone."""
    run = path.resolve().parent.name
    if path.stem in ("best", "last"):
        return run
    return f"{run}-{path.stem}" if path.stem.startswith("step_") else path.stem


def refuse_other_words(words: Words, sizes: Sizes, path: Path) -> None:
    """Raise when a checkpoint's words cannot be those that its weights were trained with."""
    for what, found, trained in (
        ("question words", len(words.vocabulary), sizes.num_words),
        ("answers", len(words.answers), sizes.num_answers),
    ):
        if found != trained:
            raise ValueError(
                f"{path} lists {found} {what}, but its weights were trained with {trained}; use "
                f"the checkpoint as it was written"
            )


def settled_options(content: dict[str, Any], path: Path) -> tuple[dict[str, Any], int]:
    """The head's options with the values of the last epoch that was trained, and that epoch."""
    options = dict(content["attention"])
    if options["name"] not in attention.available():
        raise ValueError(
            f"{path} was trained with the head '{options['name']}', which is not registered; name "
            f"the module that registers it: modules=[…]"
        )
    epoch = max(1, content["progress"]["epoch"] - 1)
    schedules = head_schedules(options, content["config"]["optim"]["epochs"])
    for name, schedule in schedules.items():
        value = schedule.at(epoch)
        options[name] = round(value) if name.endswith("iterations") else value
    return options, epoch
