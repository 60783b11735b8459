"""What the figures show: images, human answers and maps, and every model's prediction."""

import dataclasses
import shutil

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.distance import jensenshannon

from data.human_attention.vqa_hat import average_area, read_map
from data.vqa.accuracy import score_answer
from data.vqa.data_folder import DataFolder
from figures.captions import count_answers, show_percent
from figures.comparison_figures import compare_components, compare_heads


@pytest.fixture(scope="module")
def with_maps(split, samples):
    """Every model's attention to a question that has human maps."""
    questions = zip(*samples, strict=True)
    return next(each for each in questions if each[0].question_id in split.human_attention)


def test_divergence_from_people_is_scipys_on_average_over_their_maps(split, with_maps):
    sample = with_maps[0]
    expected = []
    for path in split.human_attention[sample.question_id].maps:
        cells = average_area(read_map(path), *sample.cells.shape).ravel()
        if cells.any():
            expected.append(jensenshannon(cells, sample.cells.ravel(), base=2) ** 2)
    assert split.divergence(sample) == pytest.approx(np.mean(expected))


def test_peoples_maps_belong_to_the_question_with_the_same_image_and_words(split):
    assert split.human_attention
    for number, found in split.human_attention.items():
        row = split.row(number)
        assert found.text == split.questions.texts[row]
        assert found.image_id == split.questions.image_ids[row]
        assert found.question_id != number  # VQA v1 counts in its own way


def test_a_figure_shows_answer_probability_accuracy_divergence_and_peoples_answers(
    split, with_maps
):
    content = compare_heads(split, ["a", "b", "c"], with_maps)
    titles = [panel.title for panel in content.panels]
    assert titles == ["image", "a", "b", f"c, K* = {with_maps[2].num_components}", "human"]
    assert content.panels[-1].cells.sum() == pytest.approx(1)
    annotation = split.annotations[with_maps[0].question_id]
    for sample, panel in zip(with_maps, content.panels[1:4], strict=True):
        answer = sample.prediction.answer
        assert panel.notes == (
            f"{answer}, {show_percent(sample.prediction.probability)}",
            f"accuracy {100 * score_answer(answer, annotation.answers):.0f} %",
            f"JS divergence {split.divergence(sample):.2f} bits",
        )
    for answer in annotation.answers:
        assert f"{answer} ({annotation.answers.count(answer)})" in content.caption[0]
    assert np.array_equal(content.photo, split.photo(annotation.image_id))


def test_the_selected_number_of_components_is_marked_and_no_other(split, models, samples):
    sample = samples[2][0]
    content = compare_components(split, models[2], sample)
    marked = [panel.title for panel in content.panels if panel.is_marked]
    assert marked == [f"K* = {sample.num_components}"]
    assert [panel.title[-1] for panel in content.panels[1:]] == ["1", "2", "3", "4"]
    assert "0.05 · k" in content.caption[1]


def test_photos_are_upright_and_rgb_whatever_the_file(split, tmp_path, small_dataset):
    folder = DataFolder(shutil.copytree(small_dataset, tmp_path / "data"))
    image_id = int(split.questions.image_ids[0])
    path = folder.image("val", image_id)
    path.unlink()
    sideways = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(4, 6))
    exif = Image.Exif()
    exif[0x0112] = 6
    sideways.save(path.with_suffix(".jpg"), exif=exif)
    assert dataclasses.replace(split, folder=folder).photo(image_id).shape == (6, 4, 3)


def test_probabilities_and_answers_are_written_as_they_are():
    shown = [show_percent(p) for p in (0, 0.001, 0.504, 0.996, 1)]
    assert shown == ["0 %", "< 1 %", "50 %", "> 99 %", "100 %"]
    assert count_answers(("no", "yes", "yes", "")) == "yes (2), no (1), (empty answer) (1)"
