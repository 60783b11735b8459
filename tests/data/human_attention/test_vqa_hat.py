"""VQA-HAT maps: joined by v1 ids, averaged over exact areas, black ones skipped."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from data.human_attention.vqa_hat import (
    average_area,
    list_mapped_questions,
    read_distributions,
    read_map,
)
from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder


@given(
    rows=st.integers(1, 14),
    columns=st.integers(1, 14),
    height=st.integers(1, 9),
    width=st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_area_average_equals_block_means_of_a_common_refinement(
    rows: int, columns: int, height: int, width: int
) -> None:
    picture = np.random.default_rng(rows * 97 + columns).random((rows, columns))
    # every pixel becomes height × width equal parts, and every cell a whole number of parts
    fine = np.kron(picture, np.ones((height, width)))
    expected = fine.reshape(height, rows, width, columns).mean(axis=(1, 3))
    np.testing.assert_allclose(average_area(picture, height, width), expected, atol=1e-12)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A val split with three maps of question 5 and one black map of question 7."""
    folder = DataFolder(tmp_path)
    questions = [
        {"question_id": 7, "image_id": 70, "question": "Is it dark?"},
        {"question_id": 5, "image_id": 50, "question": "What is it?"},
        {"question_id": 6, "image_id": 60, "question": "Nobody looked?"},
    ]
    write_json(folder.v1_questions("val"), {"data_subtype": "val2014", "questions": questions})
    maps = folder.human_maps("val")
    maps.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for n in (1, 2, 10):
        picture = generator.integers(0, 255, (33, 47), dtype=np.uint8)
        Image.fromarray(picture).save(maps / f"5_{n}.png")
    Image.new("L", (47, 33), 0).save(maps / "7_1.png")
    (maps / "readme.txt").write_text("not a map")
    return folder


def test_maps_join_the_v1_question_in_numeric_order(folder: DataFolder) -> None:
    first, second = list_mapped_questions(folder, "val")
    assert (first.question_id, first.image_id, first.text) == (5, 50, "What is it?")
    assert [path.name for path in first.maps] == ["5_1.png", "5_2.png", "5_10.png"]
    assert (second.question_id, second.image_id) == (7, 70)


def test_distributions_sum_to_one_and_black_maps_are_skipped(folder: DataFolder) -> None:
    found = [
        cells
        for mapped in list_mapped_questions(folder, "val")
        for cells in read_distributions(mapped, 4, 6)
    ]
    assert len(found) == 3
    for cells in found:
        assert cells.shape == (24,)
        assert cells.sum() == pytest.approx(1)
        assert (cells >= 0).all()


def test_a_bright_corner_is_the_first_cell_row_by_row(tmp_path: Path) -> None:
    picture = np.zeros((20, 30), dtype=np.uint8)
    picture[:10, 20:] = 255  # top right: row 0, column 2 of a 2 × 3 grid
    Image.fromarray(picture).save(tmp_path / "1_1.png")
    cells = average_area(read_map(tmp_path / "1_1.png"), 2, 3).reshape(-1)
    assert cells.argmax() == 2


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    DataFolder(tmp_path).human_maps("val").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="holds no map"):
        list_mapped_questions(DataFolder(tmp_path), "val")
