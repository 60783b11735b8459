"""Maps as arrays: over the right grids, black ones left out, in a fixed order."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.human_attention.map_arrays import FINE_SIDE, MappedQuestions, read_question, stack_maps
from data.human_attention.vqa_hat import MappedQuestion, average_area, find_answer_types
from data.io.atomic_files import write_json
from data.vqa.data_folder import DataFolder

QUESTIONS = MappedQuestions(
    ids=np.array([5, 7]),
    image_ids=np.array([50, 70]),
    sizes=np.array([[4, 6], [5, 3]]),
    answer_types=("other", "yes/no"),
    partners=np.array([1, 0]),
)


@pytest.fixture
def mapped(tmp_path: Path) -> list[MappedQuestion]:
    """Question 5 with maps 1, 2 and 10, of which 2 is black; question 7 with map 3."""
    generator = np.random.default_rng(0)
    for name in ("5_1", "5_10", "7_3"):
        picture = generator.integers(0, 255, (40, 60), dtype=np.uint8)
        Image.fromarray(picture).save(tmp_path / f"{name}.png")
    Image.new("L", (60, 40), 0).save(tmp_path / "5_2.png")
    files = [tmp_path / f"5_{n}.png" for n in (1, 2, 10)]
    return [
        MappedQuestion(5, 50, "What is it?", tuple(files)),
        MappedQuestion(7, 70, "Is it?", (tmp_path / "7_3.png",)),
    ]


def test_every_map_is_a_distribution_over_its_own_grid_and_its_partners(
    mapped: list[MappedQuestion],
) -> None:
    first, black, _ = read_question(0, mapped[0], QUESTIONS)
    assert black is None
    assert first is not None
    picture = np.asarray(Image.open(mapped[0].maps[0]), dtype=float)
    for found, size in (
        (first.cells, (4, 6)),
        (first.elsewhere, (5, 3)),
        (first.coarse, (14, 14)),
        (first.fine, (FINE_SIDE, FINE_SIDE)),
    ):
        expected = average_area(picture, *size).reshape(-1)
        np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)


def test_arrays_are_by_question_and_annotator_whoever_read_first(
    mapped: list[MappedQuestion],
) -> None:
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


ANSWERS = [{"answer": "yes", "answer_confidence": "yes", "answer_id": n} for n in range(1, 11)]


def test_an_answer_type_is_found_by_image_and_words(
    tmp_path: Path, mapped: list[MappedQuestion]
) -> None:
    """The ids of VQA v1 and v2 differ; the question of another image is another question."""
    folder = DataFolder(tmp_path)
    asked = {50_000: (50, "what IS it"), 70_000: (70, "How many?"), 50_001: (50, "Is it?")}
    types = {50_000: "other", 70_000: "number", 50_001: "yes/no"}
    questions = [
        {"question_id": number, "image_id": image_id, "question": text}
        for number, (image_id, text) in asked.items()
    ]
    annotations = [
        {"question_id": number, "image_id": asked[number][0], "answers": ANSWERS,
         "question_type": "is", "answer_type": kind, "multiple_choice_answer": "yes"}
        for number, kind in types.items()
    ]  # fmt: skip
    assert find_answer_types(folder, "val", mapped) == ("unknown", "unknown")
    write_json(folder.questions("val"), {"questions": questions})
    write_json(folder.annotations("val"), {"annotations": annotations})
    assert find_answer_types(folder, "val", mapped) == ("other", "unknown")
