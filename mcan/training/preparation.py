"""What must be there before every process of a run reads it: the data and its words."""

from data.batching.split import ensure_dataset
from data.text.answer_list import MIN_ANSWER_COUNT
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from mcan.training.settings import DataSettings


def prepare_data(data: DataSettings, folder: DataFolder, train_split: str, val_split: str) -> None:
    """Make what is missing, and print what the user should know of what is there."""
    ensure_dataset(data.name, data.root, data.seed, data.num_workers)
    words = prepare_words(folder, data.min_answer_count, data.question_length)
    notice = words.notice_of_threshold(data.min_answer_count, folder)
    if notice and data.min_answer_count != MIN_ANSWER_COUNT:  # the default takes the existing list
        print(notice, flush=True)
    seen = folder.layout.overlap(train_split, val_split)
    if seen:
        print(
            f"WARNING: {'+'.join(seen)} is trained on: accuracy does not measure generalisation",
            flush=True,
        )
