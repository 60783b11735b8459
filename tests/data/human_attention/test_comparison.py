"""Attention compared with human maps: equal maps agree, and every group holds its questions."""

import json

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import spearmanr

from data.human_attention.agreement import Agreement
from data.human_attention.comparison import Attention, HumanComparison, compare_attention, dump
from data.human_attention.controls import make_even
from data.human_attention.human_reference import HumanReference, next_of_same
from data.human_attention.map_arrays import (
    FINE_SIDE,
    HumanMaps,
    MappedQuestions,
    spread_map,
    stack_maps,
)
from data.human_attention.measures import jensen_shannon
from data.human_attention.report import write_comparison
from data.human_attention.vqa_hat import distribute
from data.vqa.derangement import derange

NUM_QUESTIONS, NUM_ANNOTATORS = 40, 3


def draw_questions() -> MappedQuestions:
    """Forty questions about twenty images of two shapes."""
    images = np.arange(NUM_QUESTIONS) // 2
    shapes = np.array([[8, 10], [10, 7]])
    types = tuple("yes/no" if n % 3 else "number" for n in range(NUM_QUESTIONS))
    return MappedQuestions(
        np.arange(100, 100 + NUM_QUESTIONS), images, shapes[images % 2], types, derange(images)
    )


def draw_maps(questions: MappedQuestions) -> HumanMaps:
    """Each question has a place of its own; three people look near it, and one map is black."""
    generator = np.random.default_rng(0)
    rows, columns = np.mgrid[:40, :50] / np.array([40, 50])[:, None, None]
    found = []
    for number in range(NUM_QUESTIONS):
        place = generator.uniform(0.1, 0.9, 2)
        for annotator in range(1, NUM_ANNOTATORS + 1):
            row, column = place + generator.normal(0, 0.02, 2)
            picture = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * 0.08**2))
            is_black = (number, annotator) == (3, 2)
            found.append(spread_map(number, annotator, picture * (not is_black), questions))
    return stack_maps(found, questions.num_cells, "drawn")


QUESTIONS = draw_questions()
MAPS = draw_maps(QUESTIONS)


def keep(chosen: np.ndarray) -> HumanMaps:
    """The chosen (M,) maps alone."""
    return HumanMaps(*(values[chosen] for values in list(vars(MAPS).values())[:6]), num_black=0)


@pytest.fixture(scope="module")
def comparison() -> HumanComparison:
    """A model that looks exactly as the three people do, and one that looks at its best cell."""
    like = np.array([MAPS.cells[MAPS.questions == n].mean(0) for n in range(NUM_QUESTIONS)])
    narrow = np.eye(QUESTIONS.num_cells)[like.argmax(1)]
    none, some = np.zeros(NUM_QUESTIONS, int), 1 + np.arange(NUM_QUESTIONS) % 2
    attentions = [
        Attention("like people", "multimodal", like, some),
        Attention("narrow", "discrete", narrow, none),
    ]
    return compare_attention(QUESTIONS, MAPS, attentions, num_resamples=200)


def test_the_model_that_looks_like_people_is_nearest(comparison: HumanComparison) -> None:
    like, narrow_one, blurred = comparison.models
    uniform, centre, person = (
        comparison.controls[name] for name in ("uniform", "centre", "another_person")
    )

    def bits(each: Agreement) -> float:
        return each.divergence_bits.mean

    assert bits(like.overall) < bits(person) < bits(centre) < bits(like.another_question)
    assert bits(like.overall) < bits(blurred.overall) < bits(narrow_one.overall)
    assert bits(like.overall) < bits(uniform)
    assert like.overall.divergence_bits.high < uniform.divergence_bits.low
    assert like.overall.spearman.mean > 0.9
    assert abs(like.another_question.spearman.mean) < 0.5


def test_attention_equal_to_each_map_diverges_by_nothing() -> None:
    reference = HumanReference(QUESTIONS, MAPS, 10, 0)
    first = np.searchsorted(MAPS.questions, np.arange(NUM_QUESTIONS))
    bits = reference.score(MAPS.cells[first])["divergence_bits"]
    assert (bits[first] == 0).all()
    assert (np.delete(bits, first) > 0).all()


def test_every_map_meets_the_attention_to_its_own_question(comparison: HumanComparison) -> None:
    model = comparison.models[0]
    for place in range(len(MAPS)):
        question = MAPS.questions[place]
        expected = jensen_shannon(model.attention.cells[question], MAPS.cells[place])
        assert model.scores["divergence_bits"][place] == pytest.approx(float(expected))


def test_another_questions_attention_meets_the_map_on_that_questions_grid() -> None:
    """Where attention fills the first column of its grid, the map has its share of that column."""
    sizes = QUESTIONS.sizes
    cells = np.zeros((NUM_QUESTIONS, QUESTIONS.num_cells))
    for question, (height, width) in enumerate(sizes.tolist()):
        cells[question, : height * width : width] = 1 / height
    found = HumanReference(QUESTIONS, MAPS, 10, 0).score_another(cells)["divergence_bits"]
    for place in range(len(MAPS)):
        partner = QUESTIONS.partners[MAPS.questions[place]]
        expected = jensen_shannon(cells[partner], MAPS.elsewhere[place])
        assert found[place] == pytest.approx(float(expected))
    assert (sizes[QUESTIONS.partners] != sizes).any()  # else the grid proves nothing


def test_groups_are_means_over_their_maps(comparison: HumanComparison) -> None:
    model = comparison.models[0]
    bits = model.scores["divergence_bits"]
    kinds = np.array(QUESTIONS.answer_types)[MAPS.questions]
    components = model.attention.num_components[MAPS.questions]
    for found, labels, names in (
        (model.by_annotator, MAPS.annotators.astype(str), {"1", "2", "3"}),
        (model.by_answer_type, kinds, {"yes/no", "number"}),
        (model.by_num_components, components.astype(str), {"1", "2"}),
    ):
        assert set(found) == names
        for name, agreement in found.items():
            chosen = labels == name
            mean = bits[chosen].mean()
            assert agreement.divergence_bits.mean == pytest.approx(mean)
            assert agreement.divergence_nats.mean == pytest.approx(np.log(2) * mean)
            assert agreement.distance_bits.mean == pytest.approx(np.sqrt(bits[chosen]).mean())
            assert agreement.maps == chosen.sum()
            assert agreement.questions == len(set(MAPS.questions[chosen]))
    assert comparison.models[1].by_num_components == {}


def test_only_discrete_attention_is_blurred_and_its_mass_stays(comparison: HumanComparison) -> None:
    names = [model.attention.name for model in comparison.models]
    assert names == ["like people", "narrow", "narrow blurred"]
    blurred = comparison.models[2].attention
    assert blurred.blurred
    np.testing.assert_allclose(blurred.cells.sum(1), 1)
    cells = QUESTIONS.sizes.prod(1)[:, None] <= np.arange(QUESTIONS.num_cells)
    assert (blurred.cells[cells] == 0).all()


def test_differences_are_taken_map_by_map(comparison: HumanComparison) -> None:
    like, narrow_one, _ = comparison.models
    found = next(
        each for each in comparison.paired if (each.first, each.second) == ("like people", "narrow")
    )
    difference = like.scores["divergence_bits"] - narrow_one.scores["divergence_bits"]
    bits, apart = found.difference.divergence_bits, narrow_one.overall.divergence_bits
    assert bits.mean == pytest.approx(difference.mean())
    assert bits.high < 0
    assert bits.high - bits.low < 2 * (apart.high - apart.low)
    assert len(comparison.paired) == 3


def test_controls_that_are_not_defined_are_null(comparison: HumanComparison) -> None:
    uniform = dump(comparison.controls["uniform"])
    assert uniform["spearman"] == {"mean": None, "low": None, "high": None}
    even = make_even(QUESTIONS.sizes, QUESTIONS.num_cells)[MAPS.questions]
    expected = jensen_shannon(even, MAPS.cells).mean()
    assert uniform["divergence_bits"]["mean"] == pytest.approx(expected, abs=1e-6)
    assert comparison.controls["another_person"].maps == len(MAPS)


def test_the_next_person_is_of_the_same_question() -> None:
    assert next_of_same(np.array([0, 0, 0, 2, 5, 5])).tolist() == [1, 2, 0, 3, 5, 4]


def test_every_map_meets_the_next_persons_in_all_measures() -> None:
    scores = HumanReference(QUESTIONS, MAPS, 10, 0).score_annotators()
    for place, other in enumerate(next_of_same(MAPS.questions).tolist()):
        distance = jensenshannon(MAPS.cells[place], MAPS.cells[other], base=2)
        assert scores["distance_bits"][place] == pytest.approx(distance)
        ranked = spearmanr(MAPS.coarse[place], MAPS.coarse[other]).statistic
        assert scores["spearman"][place] == pytest.approx(ranked)


def test_the_centre_is_the_mean_map_of_other_images_on_each_images_grid(
    comparison: HumanComparison,
) -> None:
    images, squared = QUESTIONS.image_ids[MAPS.questions], []
    for place, question in enumerate(MAPS.questions):
        mean = MAPS.fine[images != images[place]].mean(0).reshape(FINE_SIDE, FINE_SIDE)
        centre = distribute(mean, *QUESTIONS.sizes[question])
        human = MAPS.cells[place, : len(centre)]
        squared.append(jensenshannon(centre, human, base=2) ** 2)
    found = comparison.controls["centre"].divergence_bits.mean
    assert found == pytest.approx(np.mean(squared))


def test_a_map_without_a_second_person_is_left_out_of_that_control() -> None:
    kept = ~((MAPS.questions == 3) & (MAPS.annotators == 3))  # its second one is black
    fewer = keep(kept)
    scores = HumanReference(QUESTIONS, fewer, 10, 0).score_annotators()
    assert np.isnan(scores["divergence_bits"]).tolist() == (fewer.questions == 3).tolist()


def test_the_same_seed_gives_the_same_report_to_the_last_digit(comparison: HumanComparison) -> None:
    attentions = [model.attention for model in comparison.models if not model.attention.blurred]
    again = compare_attention(QUESTIONS, MAPS, attentions, num_resamples=200)
    assert json.dumps(again.to_json(), allow_nan=False) == json.dumps(comparison.to_json())
    other = compare_attention(QUESTIONS, MAPS, attentions, num_resamples=200, seed=1)
    assert other.models[0].overall != comparison.models[0].overall


def test_there_is_a_row_for_every_map_and_model(comparison: HumanComparison) -> None:
    rows = list(comparison.rows())
    assert len(rows) == len(MAPS) * 3 == (NUM_QUESTIONS * NUM_ANNOTATORS - 1) * 3
    first = rows[0]
    assert (first["question_id"], first["image_id"], first["annotator"]) == (100, 0, 1)
    assert (first["model"], first["num_components"], first["answer_type"]) == (
        "like people", 1, "number",
    )  # fmt: skip
    assert rows[1]["num_components"] is None
    assert first["distance_bits"] == pytest.approx(first["divergence_bits"] ** 0.5, abs=1e-5)
    summary = comparison.to_json()
    assert (summary["questions"], summary["images"], summary["maps"]) == (40, 20, 119)
    assert summary["black_maps_left_out"] == 1


def test_there_is_no_summary_unless_its_table_is_there(comparison, tmp_path) -> None:
    (tmp_path / "val.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        write_comparison(tmp_path / "val.json", {}, comparison)
    assert [path.name for path in tmp_path.iterdir()] == ["val.csv"]
    (tmp_path / "val.csv").rmdir()
    write_comparison(tmp_path / "val.json", {}, comparison)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["val.csv", "val.json"]


def test_maps_of_a_single_image_are_rejected() -> None:
    questions = MappedQuestions(
        QUESTIONS.ids[:2], np.zeros(2, int), QUESTIONS.sizes[:2], ("other",) * 2, np.array([1, 0])
    )
    few = keep(MAPS.questions < 2)
    attention = Attention("one", "discrete", np.full((2, 80), 1 / 80), np.zeros(2, int))
    with pytest.raises(ValueError, match="at least two images"):
        compare_attention(questions, few, [attention])
