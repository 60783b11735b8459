"""What must be there before every process of a run reads it: the data and its words."""

from pathlib import Path

from data.settings import Data
from data.text.answer_list import DEFAULT_COUNTS
from data.text.word_lists import Words, prepare_words
from data.vqa.data_folder import DataFolder
from mcan.training.settings import TrainingSettings


def prepare_data(settings: TrainingSettings, folder: DataFolder, resume: bool = False) -> Words:
    """Make what is missing, print what the user should know of what is there; the words."""
    data = settings.data
    if not resume:  # a checkpoint has embeddings
        check_word_vectors(settings.word_vectors)
    ensure_dataset(data)
    splits, extra = folder.layout.divide_training(settings.train_split)
    folder.check_annotations(splits)
    for name in extra:
        folder.check_extra(name)
    words = prepare_words(folder, data.min_answer_count, data.question_length)
    notice = words.notice_of_threshold(data.min_answer_count, folder)
    if notice and data.min_answer_count not in DEFAULT_COUNTS:  # defaults take the existing list
        print(notice, flush=True)
    seen = folder.layout.overlap(settings.train_split, settings.val_split)
    if seen:
        print(
            f"WARNING: {'+'.join(seen)} is trained on: accuracy does not measure generalisation",
            flush=True,
        )
    return words


def check_word_vectors(path: str | None) -> None:
    """Raise where the file that the embeddings are to start from is not there."""
    if path and not Path(path).is_file():
        raise FileNotFoundError(
            f"there are no word vectors {path}: name another file with glove=<file>, or start from "
            "random vectors with glove=none; "
            'make data DATA=vqa_v2 ARGS="data.glove=true" downloads glove.840B.300d.txt'
        )


def ensure_dataset(data: Data) -> None:
    """Draw the dataset `shapes` where it is not there yet; other datasets must be."""
    if data.name == "shapes":
        from data.shapes.build import build_shapes

        build_shapes(Path(data.root), data.seed, num_workers=data.num_workers)
    elif not data.root:
        raise ValueError(f"data={data.name} needs the folder of your data: data.root=…")
    elif not Path(data.root).is_dir():
        custom = data.name == "custom"
        how = "give your folder with data.root=…" if custom else f"run make data DATA={data.name}"
        raise ValueError(f"there is no data in {data.root}: {how}")
