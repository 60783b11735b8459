"""What every command that lets trained models answer a split begins with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from data.answers import AnswerList
from data.batch import Batch
from data.controls import derange
from data.examples import build_examples
from data.files import refuse_file_on_the_way, refuse_folder
from data.loader import Loader
from data.questions import Annotation, Questions, load_annotations, load_questions
from data.splits import SUBTYPES, Folder, overlap, question_subtype, split_names
from data.store_set import open_stores
from data.vocabulary import Vocabulary
from mcan.processes import World
from scripts.dataset import Split
from scripts.model import import_modules
from scripts.settings import require_text
from scripts.torch_settings import set_up_torch
from scripts.trained import Trained, load_trained
from scripts.validation import iterate_split


@dataclass(frozen=True)
class Asked:
    """The questions of a split, ready to be answered by models of one vocabulary."""

    folder: Folder
    split: str
    questions: Questions
    annotations: list[Annotation]  # none where the split has none
    loader: Loader
    runtime: DictConfig

    def batches(self, world: World) -> Iterator[Batch]:
        """This process's batches; which questions share one depends on the split alone."""
        runtime = self.runtime
        return iterate_split(
            self.loader,
            runtime.evaluation_batch_size,
            runtime.mixing,
            world,
            runtime.show_progress,
        )


def begin(config: DictConfig) -> None:
    """Settings of torch itself, and the user's own heads."""
    set_up_torch(config.runtime)
    import_modules(list(config.modules))


def load_for(config: DictConfig, checkpoint: str, world: World) -> Trained:
    """The model of a checkpoint, with the head's options that this command changes."""
    path = require_text("checkpoint", checkpoint)
    return load_trained(path, world.device, changed_options(config))


def load_together(config: DictConfig, checkpoints: Sequence[str], world: World) -> list[Trained]:
    """Several models; an option that is changed must be one of some of their heads."""
    changed = changed_options(config)
    models = []
    for path in checkpoints:
        model = load_trained(require_text("checkpoints", path), world.device)
        own = {name: value for name, value in changed.items() if name in model.options}
        models.append(load_trained(path, world.device, own) if own else model)
    for name in changed:
        if not any(name in model.options for model in models):
            heads = ", ".join(sorted({model.options["name"] for model in models}))
            raise ValueError(f"attention.{name} is no option of any head there is: {heads}")
    return models


def changed_options(config: DictConfig) -> dict[str, Any]:
    """The options of attention heads that a command line sets."""
    options: dict[str, Any] = OmegaConf.to_container(config.attention, resolve=True)  # type: ignore[assignment]
    return {name: value for name, value in options.items() if value is not None}


def choose_files(
    config: DictConfig, trained: Trained, folder: str, names: Sequence[str]
) -> list[Path]:
    """The files that a command will write: in the folder it is told, or in one by the checkpoint.

    What stands in their way is refused before the work begins.
    """
    place = trained.path.parent / folder
    if config.output:
        place = Path(require_text("output", config.output))
    files = [place / name for name in names]
    for path in files:
        refuse_file_on_the_way(path)
        refuse_folder(path)
    return files


def ask(
    config: DictConfig,
    models: Sequence[Trained],
    world: World,
    annotated: bool,
    other_images: bool = False,
) -> Asked:
    """Open the split that the models are to answer; they share vocabulary and answers.

    `other_images` shows every question the image of another one: what a model then gets right, it
    knows without looking.
    """
    trained = models[0]
    folder = Folder(data_root(config, trained))
    for each in models:
        refuse_words(each, folder)
    questions = read_questions(folder, config.split)
    annotations = read_annotations(folder, config.split) if annotated else None
    stores = open_stores(
        folder.stores(config.split), config.runtime.reader, config.runtime.stage_to
    )
    backbone = stores.stores[0].manifest.backbone
    for each in models:
        each.refuse_features(stores.num_features, backbone, stores.names())
    words = trained.words
    examples = build_examples(questions, annotations, words.vocabulary, words.answers)
    if other_images:
        partners = derange(examples.image_ids)
        examples = replace(examples, image_ids=examples.image_ids[partners])
    pin = world.device.type == "cuda"
    loader = Split(examples, stores).loader(words, config.runtime, pin, share_images=True)
    return Asked(folder, config.split, questions, annotations or [], loader, config.runtime)


def data_root(config: DictConfig, trained: Trained) -> str:
    """The folder of the data: the one that is named, or the one the model was trained on."""
    if config.data.root:
        root = require_text("data.root", config.data.root)
        advice = "name another folder"
    else:
        root = trained.config["data"]["root"]
        advice = f"{trained.path} was trained there; say where it is now with data.root=…"
    if not Path(root).is_dir():
        raise FileNotFoundError(f"there is no data in {root}: {advice}")
    return root


def refuse_words(trained: Trained, folder: Folder) -> None:
    """Raise when the folder's own words are not those that the model knows."""
    words, owner = trained.words, str(trained.path)
    if folder.vocabulary.is_file():
        there = Vocabulary.load(folder.vocabulary)
        there.refuse_other(words.vocabulary.fingerprint, owner, str(folder.vocabulary))
    if folder.answers.is_file():
        listed = AnswerList.load(folder.answers)
        listed.refuse_other(words.answers.fingerprint, owner, str(folder.answers))


def read_questions(folder: Folder, split: str) -> Questions:
    """The questions of a split; a file that says it is another split's is refused."""
    names = split_names(split)
    files = folder.question_files(split)
    for path in files:
        if not path.is_file():
            there = [name for name in SUBTYPES if folder.questions(name).is_file()]
            choice = f"; choose split={' or split='.join(there)}" if there else ""
            raise FileNotFoundError(f"{path} does not exist{choice}")
    questions = load_questions(files)
    official = {subtype for subtype, _ in SUBTYPES.values()}
    for name, path, found in zip(names, files, questions.subtype.split("+"), strict=False):
        expected = question_subtype(name)
        if found != expected and found in official:
            raise ValueError(
                f"{path} holds the questions of {found} (its data_subtype), not of {expected}; put "
                f"the right file there, or choose the split it belongs to"
            )
    if not len(questions):
        raise ValueError(f"{', '.join(map(str, files))} holds no questions")
    return questions


def read_annotations(folder: Folder, split: str) -> list[Annotation]:
    """The annotations of a split, which must have them."""
    missing = [path for path in folder.annotation_files(split) if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{missing[0]} does not exist, so split={split} has no accuracy; `make export` writes "
            f"answers for the server"
        )
    return load_annotations(folder.annotation_files(split))


def warn_of_training(trained: Trained, split: str) -> list[str]:
    """The parts of a split that the model was trained on; says so, where there are any."""
    seen = list(overlap(trained.train_split, split))
    if seen:
        print(
            f"WARNING: {trained.path} was trained on {'+'.join(seen)}: its accuracy there says "
            f"little of new questions",
            flush=True,
        )
    return seen
