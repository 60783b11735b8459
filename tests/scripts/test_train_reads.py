"""A run reads each file of questions and annotations once, whatever is missing at first."""

import io
import shutil
from collections import Counter
from pathlib import Path

import pytest

from data.vqa.data_folder import DataFolder
from tests.small_runs import settings, train_here

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


@pytest.fixture
def opened(monkeypatch):
    """How often each file was opened for reading, by its name."""
    counts = Counter()
    original = io.open

    def counting(file, mode="r", *arguments, **options):
        if isinstance(file, (str, Path)) and "r" in mode:
            counts[Path(file).name] += 1
        return original(file, mode, *arguments, **options)

    monkeypatch.setattr("builtins.open", counting)
    monkeypatch.setattr(io, "open", counting)  # pathlib's
    return counts


@pytest.mark.parametrize("words", ["missing", "built"])
def test_each_file_of_questions_and_annotations_is_opened_once(
    small_dataset, tmp_path, opened, words
):
    folder = DataFolder(shutil.copytree(small_dataset, tmp_path / "data"))
    if words == "missing":
        folder.vocabulary.unlink(missing_ok=True)
        folder.answers.unlink(missing_ok=True)
    train_here(settings(folder.root, tmp_path / "runs", "name=counted"))
    files = [
        read(split) for split in ("train", "val") for read in (folder.questions, folder.annotations)
    ]
    assert {path.name: opened[path.name] for path in files} == {path.name: 1 for path in files}
    assert opened[folder.questions("test").name] == 0
