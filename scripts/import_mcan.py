"""make import-mcan: a published MCAN as a checkpoint of this project."""

from dataclasses import replace
from pathlib import Path

from configs.schema.training import ImportMcan
from data.features.manifest import Manifest
from data.io.atomic_files import check_output_file
from data.text.answer_list import AnswerList
from data.text.published_words import read_words
from data.text.vocabulary import Vocabulary
from data.text.word_lists import Words
from data.vqa.data_folder import DataFolder
from data.vqa.layout import VQA_V2
from mcan.checkpoint import save_checkpoint
from mcan.published.imported_model import ImportedModel, import_published
from scripts.cli.command import command


@command("import_mcan")
def main(settings: ImportMcan) -> None:
    """Import, and say what was imported."""
    print(*import_file(settings), sep="\n")


def import_file(settings: ImportMcan) -> list[str]:
    """Read a published file, check it, rename its weights, write a checkpoint; lines to print."""
    output = Path(settings.output)
    check_output_file(output)
    if output.exists():
        raise FileExistsError(f"{output} exists already; delete it or name another output=…")
    VQA_V2.divide_training(settings.train_split)
    model = import_published(settings.checkpoint, settings.num_heads)
    words = read_words(
        settings.tokens,
        settings.questions,
        settings.answers,
        num_words=model.sizes.num_words,
        num_answers=model.sizes.num_answers,
        needed=bool(settings.words_of),
    )
    model = replace(model, words=words)
    notices = []
    if settings.words_of:
        words = load_words(DataFolder(settings.words_of))
        model, new_words, new_answers = model.reorder(words)
        notices.append(
            f"its rows are in the order of {settings.words_of}, of whose {len(words.vocabulary)} "
            f"words {new_words} and of whose {len(words.answers)} answers {new_answers} are new "
            f"to it"
        )
    content = model.checkpoint(
        attention=settings.attention,
        optim=settings.composed["optim"],
        train_split=settings.train_split,
        backbone=settings.backbone,
        data_root=settings.words_of or "datasets/vqa_v2",
    )
    save_checkpoint(output, content)
    unit = Manifest.parse(content["manifest"], output).unit
    return [f"{output}: {describe_sizes(model, unit)}", *notices]


def load_words(folder: DataFolder) -> Words:
    """The vocabulary and the answers of a data folder."""
    for path in (folder.vocabulary, folder.answers):
        if not path.is_file():
            raise FileNotFoundError(f"there is no {path}; run make data for that folder first")
    return Words(Vocabulary.load(folder.vocabulary), AnswerList.load(folder.answers))


def describe_sizes(model: ImportedModel, unit: str) -> str:
    """A line on what was written."""
    sizes = model.sizes
    known = "" if model.words is not None else "; it carries no words (tokens=… answers=…)"
    return (
        f"{sizes.num_layers} layers of {sizes.hidden}, {sizes.num_features} features per {unit}, "
        f"{sizes.num_words} words, {sizes.num_answers} answers{known}"
    )


if __name__ == "__main__":
    main()
