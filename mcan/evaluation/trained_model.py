"""A trained model, brought back from its checkpoint with the words it knows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import attention
from attention.heads.registry import name_variant
from data.features.manifest import Manifest
from data.features.store_set import StoreSet
from data.text.answer_list import AnswerList
from data.text.vocabulary import Vocabulary
from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from data.vqa.layout import VQA_V2
from mcan.checkpoint import load_checkpoint
from mcan.head_options import selects_components
from mcan.head_schedule import ScheduledHead
from mcan.network.architecture import infer_sizes, load_weights
from mcan.network.model import MCAN, Sizes
from mcan.runtime.settings import read_batch_size

LONGEST = 120  # letters of the names of several models, which become a file's


@dataclass(frozen=True)
class TrainedModel:
    """All that a checkpoint says, ready for use: the model is in evaluation mode."""

    path: Path
    name: str  # the run's
    model: MCAN
    words: Words
    options: dict[str, Any]  # of the attention head, as they are in force now
    trained_head: str  # `head_name` as it was in training
    config: dict[str, Any]  # of the run that trained it
    manifest: Manifest  # of the features it was trained on
    train_split: str
    epoch: int  # epochs that were trained to the end
    batch_size: int | None  # of its run's validation, where K* depends on it: selection=batch

    @property
    def head_name(self) -> str:
        """What figures and reports call its attention."""
        return name_variant(**self.options)

    @property
    def lam(self) -> float | None:
        """The λ with which its head selects K; None where it does not."""
        return getattr(self.model.pool_image.head, "lam", None)

    def check_features(self, stores: StoreSet) -> None:
        """Raise when features of this width or backbone are not what the model was trained on.

        Its head must be one for such features, too.
        """
        check_kind(stores, self.model.sizes.num_features, self.manifest, self.path)
        check_positions(self.model, self.options["name"], stores)

    def check_words(self, folder: DataFolder) -> None:
        """Raise when the folder's own words are not those that the model knows."""
        known, owner = self.words, str(self.path)
        if (path := folder.vocabulary).is_file():
            Vocabulary.load(path).check_same(known.vocabulary.fingerprint, owner, str(path))
        if (path := folder.answers).is_file():
            AnswerList.load(path).check_same(known.answers.fingerprint, owner, str(path))

    def check_selects(self) -> None:
        """Raise for a head that does not select the number of components by λ."""
        if not selects_components(self.options):
            raise ValueError(
                f"{self.path} was trained with {self.options['name']} attention, which has no λ to "
                "select; give a checkpoint with multimodal attention"
            )

    def open_data(self, root: str | None = None) -> DataFolder:
        """The data in the folder that is named, or where the model was trained, in its layout."""
        advice, data = "name another folder", self.config["data"]
        if not root:
            root = str(data["root"])
            advice = f"{self.path} was trained there; say where it is now with data.root=…"
        if not Path(root).is_dir():
            raise FileNotFoundError(f"there is no data in {root}: {advice}")
        return DataFolder(root, data.get("layout", VQA_V2))


def check_kind(stores: StoreSet, num_features: int, trained: Manifest, owner: object) -> None:
    """Raise when features of this width or backbone are not what the owner was trained on."""
    manifest = stores.stores[0].manifest
    found = stores.num_features, manifest.backbone
    if found != (num_features, trained.backbone):
        raise ValueError(
            f"{stores.names()} holds {found[0]} features per {manifest.unit} of backbone "
            f"{found[1]}, but {owner} was trained on {num_features} per {trained.unit} "
            f"of backbone {trained.backbone}"
        )


def check_positions(model: MCAN, head: str, stores: StoreSet) -> None:
    """Raise when a head that reads where cells are is to attend to regions."""
    if model.pool_image.head.uses_positions:
        stores.require_grid(f"{head} attention needs one; discrete attention does not")


def load_trained(
    path: str | Path,
    device: torch.device | str = "cpu",
    changed: Mapping[str, Any] | None = None,
    *,
    only_known: bool = False,
) -> TrainedModel:
    """Rebuild the model of a checkpoint, or of the best one of a run's folder.

    `changed` holds options of the attention head to replace: they act at test time. With
    `only_known`, those that the head does not have are left out, else they are an error.
    """
    path = find_checkpoint(Path(path))
    content = load_checkpoint(path)
    try:
        trained = rebuild(content, path, changed or {}, only_known)
    except (LookupError, TypeError, AttributeError, RuntimeError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        raise ValueError(
            f"{path} was not written by this project's training, or was changed since ({reason})"
        ) from None
    except ValueError as error:
        raise ValueError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    trained.model.to(device)
    return trained


def load_several(
    paths: Sequence[str | Path], device: torch.device | str, changed: Mapping[str, Any]
) -> list[TrainedModel]:
    """Several models; an option that is changed must be one of some of their heads."""
    models = [load_trained(path, device, changed, only_known=True) for path in paths]
    for name in changed:
        if not any(name in model.options for model in models):
            heads = ", ".join(sorted({model.options["name"] for model in models}))
            raise ValueError(f"attention.{name} is not an option of any head there is: {heads}")
    return models


def name_models(models: Sequence[TrainedModel]) -> list[str]:
    """A name for each: its run's, with the checkpoint's where a run has several."""
    paths = Counter(model.path.resolve() for model in models)
    path, count = paths.most_common(1)[0]
    if count > 1:
        raise ValueError(f"{path} is named {count} times; name each checkpoint once")
    runs = Counter(model.name for model in models)
    names = [
        model.name if runs[model.name] == 1 else f"{model.path.parent.name}-{model.path.stem}"
        for model in models
    ]
    if len(set(names)) < len(names):  # runs of one name in different folders
        return [str(model.path) for model in models]
    return names


def join_names(names: Sequence[str]) -> str:
    """One name for several models, cut where a file could not be called that."""
    name = "+".join(names)
    return name if len(name) <= LONGEST or len(names) == 1 else f"{name[:LONGEST]}+{len(names)}"


def label_models(models: Sequence[TrainedModel]) -> list[str]:
    """The name of each, with its head where that has another normaliser or density now."""
    return [
        name if model.head_name == model.trained_head else f"{name} ({model.head_name})"
        for model, name in zip(models, name_models(models), strict=True)
    ]


def rebuild(
    content: dict[str, Any], path: Path, changed: Mapping[str, Any], only_known: bool
) -> TrainedModel:
    """The model of a checkpoint's content; nothing in its config is resolved or imported."""
    words = Words.from_state(content, str(path))
    options, epoch = options_at_last_epoch(content, path)
    unknown = [name for name in changed if name not in options]
    if unknown and not only_known:
        raise ValueError(
            f"attention.{unknown[0]} is not an option of the {options['name']} head of {path}, "
            f"which has {', '.join(sorted(options))}"
        )
    trained_head = name_variant(**options)
    options.update((name, value) for name, value in changed.items() if name in options)
    sizes = Sizes(**content["sizes"])
    check_word_counts(words, sizes, path)
    if infer_sizes(content["model"], sizes.num_heads) != sizes:  # before room is made for them
        raise ValueError(f"{path} has another architecture than the sizes that it names")
    model = MCAN(sizes, attention.build(**options))
    load_weights(model, content["model"], str(path))
    return TrainedModel(
        path,
        name_run(path),
        model.eval(),
        words,
        options,
        trained_head,
        content["config"],
        Manifest.parse(content["manifest"], path),
        content["train_split"],
        epoch,
        read_batch_size(content["config"]) if options.get("selection") == "batch" else None,
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


def check_word_counts(words: Words, sizes: Sizes, path: Path) -> None:
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


def options_at_last_epoch(content: dict[str, Any], path: Path) -> tuple[dict[str, Any], int]:
    """The head's options with the values of the last epoch that was trained, and that epoch."""
    options = dict(content["attention"])
    if options["name"] not in attention.available():
        raise ValueError(
            f"{path} was trained with the head '{options['name']}', which is not registered; name "
            f"the module that registers it: modules=[…]"
        )
    epoch = max(1, content["progress"]["epoch"] - 1)
    scheduled = ScheduledHead(options, content["config"]["optim"]["epochs"])
    return scheduled.options_at(epoch), epoch
