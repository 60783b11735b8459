import os

import numpy as np
import pytest
import torch

from data.features.from_pth import convert_folder
from data.features.reader import FeatureStore
from tests.data.features.killed_build import kill_when_stored
from tests.data.features.sample_features import write_pth
from tests.data.vqa.official_files import real_folder


def assert_same(path, tensors):
    with FeatureStore(path) as store:
        assert store.image_ids.tolist() == sorted(tensors)
        for image_id, tensor in tensors.items():
            _, features, height, width = tensor.shape
            assert store.size(image_id) == (height, width)
            expected = tensor.numpy().transpose(0, 2, 3, 1).reshape(height * width, features)
            np.testing.assert_array_equal(store.rows(image_id), expected.astype(np.float16))


@pytest.mark.parametrize("num_threads", [1, 3])
def test_cells_are_row_major_and_images_keep_their_ids(tmp_path, num_threads):
    tensors = write_pth(tmp_path / "pth")
    copied = convert_folder(tmp_path / "pth", tmp_path / "a.h5", num_threads=num_threads)
    assert copied == len(tensors)
    assert_same(tmp_path / "a.h5", tensors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "pth"]


def test_files_of_the_oldest_format_are_converted_too(tmp_path):
    tensors = write_pth(tmp_path / "pth", 2)
    for image_id, tensor in tensors.items():
        path = tmp_path / "pth" / f"{image_id}.pth"
        torch.save(tensor, path, _use_new_zipfile_serialization=False)
    convert_folder(tmp_path / "pth", tmp_path / "a.h5")
    assert_same(tmp_path / "a.h5", tensors)


PROGRAM = """
import sys, time
import data.features.from_pth as convert
load, count = convert.load_tensor, 0
def slow(path):
    global count
    count += 1
    if count > 12 + 5:  # the scan of twelve, then five copies: stand still until killed
        time.sleep(60)
    return load(path)
convert.load_tensor = slow
convert.convert_folder(sys.argv[2], sys.argv[1], num_threads=1, commit_bytes=1)
"""


def test_a_killed_conversion_goes_on_without_redoing_what_is_done(tmp_path):
    tensors = write_pth(tmp_path / "pth", 12)
    output = tmp_path / "a.h5"
    kill_when_stored(PROGRAM, output, 5, tmp_path / "pth")
    assert convert_folder(tmp_path / "pth", output, num_threads=2) == 12 - 5
    assert_same(output, tensors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "pth"]
    convert_folder(tmp_path / "pth", tmp_path / "b.h5")
    assert output.read_bytes() == (tmp_path / "b.h5").read_bytes()


def interrupt(source, output):
    """Leave a conversion unfinished by an image that cannot be stored, and repair the image."""
    last = max(source.iterdir(), key=lambda path: int(path.stem))
    good, times = last.read_bytes(), last.stat()
    tensor = torch.load(last, weights_only=True)
    tensor[0, 0, 0, 0] = torch.inf
    torch.save(tensor, last)
    os.utime(last, ns=(times.st_atime_ns, times.st_mtime_ns))
    message = f"{last}: image {last.stem} has features that are NaN or inf"
    with pytest.raises(ValueError, match=message):
        convert_folder(source, output, num_threads=1, commit_bytes=1)
    assert len(good) == len(last.read_bytes())
    last.write_bytes(good)
    os.utime(last, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def begun(tmp_path):
    """Source, output and contents of a conversion that stopped before the last of six files."""
    tensors = write_pth(tmp_path / "pth", 6)
    interrupt(tmp_path / "pth", tmp_path / "a.h5")
    return tmp_path / "pth", tmp_path / "a.h5", tensors


# what journals of older versions do not have
NEWER = '"dtype": "float16", "stride": 32, "cells": "grid", '


@pytest.mark.parametrize(
    ("name", "change", "num_copied"),
    [
        pytest.param("a.h5.journal", lambda text: text[:-4], 2, id="torn line"),
        pytest.param("a.h5.journal", lambda text: text.replace(NEWER, ""), 1, id="older version"),
        pytest.param("a.h5.scan", lambda text: "[", 6, id="no record of the files"),
    ],
)
def test_an_interrupted_conversion_copies_what_is_not_known_to_be_done(
    begun, tmp_path, name, change, num_copied
):
    source, output, tensors = begun
    text = (tmp_path / name).read_text()
    assert text != change(text)
    (tmp_path / name).write_text(change(text))
    assert convert_folder(source, output) == num_copied
    assert_same(output, tensors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "pth"]


def test_an_unfinished_store_of_other_files_is_not_continued(begun):
    source, output, _ = begun
    torch.save(torch.zeros(1, 4, 19, 26), source / "1.pth")
    advice = r".* delete it and .*a\.h5\.journal"
    with pytest.raises(ValueError, match=rf"a\.h5\.partial was begun with other grids{advice}"):
        convert_folder(source, output)
    write_pth(source, 6)
    other = rf"was begun with backbone grid-feats, not X-101{advice}"
    with pytest.raises(ValueError, match=other):
        convert_folder(source, output, backbone="X-101")
    assert not output.exists()


def test_a_repaired_file_is_copied_and_what_was_done_is_kept(tmp_path):
    tensors = write_pth(tmp_path / "pth", 6)
    broken = tmp_path / "pth" / "51.pth"
    torch.save(torch.full_like(tensors[51], torch.nan), broken)
    with pytest.raises(ValueError, match=r"51\.pth: image 51 has features that are NaN"):
        convert_folder(tmp_path / "pth", tmp_path / "a.h5", num_threads=1, commit_bytes=1)
    torch.save(tensors[51], broken)
    assert convert_folder(tmp_path / "pth", tmp_path / "a.h5") == 1
    assert_same(tmp_path / "a.h5", tensors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "pth"]


@pytest.mark.parametrize("again", [False, True])
def test_a_file_changed_after_it_was_copied_is_copied_again(begun, again):
    source, output, tensors = begun
    tensors[11] = torch.ones_like(tensors[11])
    torch.save(tensors[11], source / "11.pth")
    os.utime(source / "11.pth", ns=(1, 1))
    if again:  # interrupted once more, after the change was noticed
        interrupt(source, output)
    assert convert_folder(source, output) == (1 if again else 2)
    assert_same(output, tensors)


def test_what_cannot_be_done_is_rejected_before_any_file_is_read(tmp_path):
    write_pth(tmp_path / "pth", 1)
    (tmp_path / "pth" / "5.pth").write_bytes(b"hello")  # reading it would raise another error
    for options, message in [
        ({"backbone": 101}, "backbone is 101, expected text"),
        ({"resize": [1000, 600]}, "short side is the longer one"),
        ({"num_threads": -1}, "num_threads is -1, expected 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            convert_folder(tmp_path / "pth", tmp_path / "a.h5", **options)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", b"hello", "notes.txt is not named <image_id>.pth"),
        ("cat.pth", torch.zeros(1, 4, 2, 2), "cat.pth is not named <image_id>.pth"),
        ("01.pth", torch.zeros(1, 4, 2, 2), "are the same image"),
        (
            "99999999999999999999.pth",
            torch.zeros(1, 4, 2, 2),
            "999.pth: an image id may be at most",
        ),
        ("5.pth", b"hello", "5.pth cannot be read as a tensor"),
        ("5.pth", b"is it?", r"5.pth cannot be read as a tensor \(\w+: .*\): it is damaged"),
        ("5.pth", b"PK\x03\x04hello", "5.pth cannot be read as a tensor"),
        ("5.pth", {"features": torch.zeros(2)}, "5.pth holds no tensor"),
        ("5.pth", torch.zeros(1, 4, 2, 2, dtype=torch.int64), "5.pth holds no tensor of floating"),
        ("5.pth", torch.zeros(4, 2, 2), r"5.pth has shape \[4, 2, 2\]"),
        ("5.pth", torch.zeros(2, 4, 2, 2), r"5.pth has shape \[2, 4, 2, 2\]"),
        ("5.pth", torch.zeros(1, 4, 0, 2), r"5.pth has shape \[1, 4, 0, 2\]"),
        ("5.pth", torch.zeros(1, 3, 2, 2), "5.pth has 3 features per cell, but .*1.pth has 4"),
        ("5.pth", torch.zeros(1, 4, 20, 32), "image 5 has 20×32 = 640 cells"),
    ],
)
def test_foreign_files_are_rejected_and_nothing_is_written(tmp_path, name, content, message):
    write_pth(tmp_path / "pth", 2)
    if isinstance(content, bytes):
        (tmp_path / "pth" / name).write_bytes(content)
    else:
        torch.save(content, tmp_path / "pth" / name)
    with pytest.raises(ValueError, match=message):
        convert_folder(tmp_path / "pth", tmp_path / "a.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["pth"]


def test_a_pickle_that_would_run_code_is_rejected(tmp_path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    write_pth(tmp_path / "pth", 1)
    torch.save(Payload(), tmp_path / "pth" / "5.pth")
    with pytest.raises(ValueError, match=r"5.pth cannot be read as a tensor"):
        convert_folder(tmp_path / "pth", tmp_path / "a.h5")
    assert not (tmp_path / "ran").exists()


def test_an_empty_or_absent_folder_is_rejected(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no <image_id>"):
        convert_folder(tmp_path / "empty", tmp_path / "a.h5")
    with pytest.raises(FileNotFoundError, match="absent is not a folder"):
        convert_folder(tmp_path / "absent", tmp_path / "a.h5")


@pytest.mark.real
def test_real_features_are_converted_to_the_last_cell(tmp_path):
    folder = real_folder() / "features" / "val2014"
    convert_folder(folder, tmp_path / "a.h5", backbone="mobilenet", resize=[384, 640])
    tensors = {int(path.stem): torch.load(path, weights_only=True) for path in folder.glob("*.pth")}
    assert_same(tmp_path / "a.h5", tensors)
