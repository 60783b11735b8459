"""VQA-HAT maps: joined by v1 ids, averaged over exact areas, stacked without the black ones."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from data.human_attention.map_arrays import FINE_SIDE, MappedQuestions, read_question, stack_maps
from data.human_attention.vqa_hat import (
    average_area,
    find_answer_types,
    list_mapped_questions,
    read_distributions,
    read_map,
)
from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder
from tests.data.vqa.official_files import make_annotation, make_question

QUESTIONS = MappedQuestions(
    ids=np.array([5, 7]),
    image_ids=np.array([50, 70]),
    sizes=np.array([[4, 6], [5, 3]]),
    answer_types=("other", "yes/no"),
    partners=np.array([1, 0]),
)


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
    """A val split with maps 1, 2 and 10 of question 5, of which 2 is black, and 3 of question 7."""
    folder = DataFolder(tmp_path)
    texts = {7: "Is it?", 5: "What is it?", 6: "Nobody looked?"}
    questions = [make_question(n, text, image_id=10 * n) for n, text in texts.items()]
    write_json(folder.v1_questions("val"), {"data_subtype": "val2014", "questions": questions})
    maps = folder.human_maps("val")
    maps.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for name in ("5_1", "5_10", "7_3"):
        picture = generator.integers(0, 255, (33, 47), dtype=np.uint8)
        Image.fromarray(picture).save(maps / f"{name}.png")
    Image.new("L", (47, 33), 0).save(maps / "5_2.png")
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


def test_every_map_is_a_distribution_over_its_own_grid_and_its_partners(
    folder: DataFolder,
) -> None:
    mapped, _ = list_mapped_questions(folder, "val")
    first, black, _ = read_question(0, mapped, QUESTIONS)
    assert black is None
    assert first is not None
    picture = np.asarray(Image.open(mapped.maps[0]), dtype=float)
    for found, size in (
        (first.cells, (4, 6)),
        (first.elsewhere, (5, 3)),
        (first.coarse, (14, 14)),
        (first.fine, (FINE_SIDE, FINE_SIDE)),
    ):
        expected = average_area(picture, *size).reshape(-1)
        np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)


def test_arrays_are_by_question_and_annotator_whoever_read_first(folder: DataFolder) -> None:
    mapped = list_mapped_questions(folder, "val")
    parts = [read_question(number, mapped[number], QUESTIONS) for number in (1, 0)]
    maps = stack_maps([each for part in parts for each in part], QUESTIONS.num_cells, "maps")
    assert maps.questions.tolist() == [0, 0, 1]
    assert maps.annotators.tolist() == [1, 10, 3]
    assert (len(maps), maps.num_black) == (3, 1)
    assert maps.cells.shape == maps.elsewhere.shape == (3, 24)
    np.testing.assert_allclose(maps.cells.sum(1), 1)
    np.testing.assert_allclose(maps.elsewhere.sum(1), 1)
    assert (maps.cells[2, 15:] == 0).all()
    assert (maps.elsewhere[:2, 15:] == 0).all()


def test_an_answer_type_is_found_by_image_and_words(folder: DataFolder) -> None:
    """The ids of VQA v1 and v2 differ; the question of another image is another question."""
    mapped = list_mapped_questions(folder, "val")
    assert find_answer_types(folder, "val", mapped) == ("unknown", "unknown")
    asked = [(50, "what IS it", "other"), (70, "How many?", "number"), (50, "Is it?", "yes/no")]
    questions, annotations = [], []
    for number, (image_id, text, answer_type) in enumerate(asked, 50_000):
        questions.append(make_question(number, text, image_id))
        entry = make_annotation(number, ["yes"] * 10, image_id=image_id)
        annotations.append(entry | {"answer_type": answer_type})
    write_json(folder.questions("val"), {"questions": questions})
    write_json(folder.annotations("val"), {"annotations": annotations})
    assert find_answer_types(folder, "val", mapped) == ("other", "unknown")
