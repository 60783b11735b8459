import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.batching.sampler import TrainingSampler, evaluation_batches, spread_rows

SHAPES = np.array([(19, 25), (25, 19), (19, 29), (29, 19)])


@st.composite
def splits(draw):
    """Shapes (Q, 2) and image ids (Q,) of a split in which images have several questions."""
    num_images = draw(st.integers(1, 30))
    kinds = draw(st.lists(st.integers(0, 3), min_size=num_images, max_size=num_images))
    images = draw(st.lists(st.integers(0, num_images - 1), min_size=1, max_size=120))
    return SHAPES[np.array(kinds)[images]], np.array(images) * 7 + 1


@settings(max_examples=60, deadline=None)
@given(
    splits(), st.integers(1, 9), st.integers(0, 5), st.sampled_from(["none", "leftovers", "all"])
)
def test_an_epoch_has_every_question_once(split, batch_size, epoch, mixing):
    shapes, _ = split
    batches = TrainingSampler(shapes, batch_size, seed=3, mixing=mixing)
    plan = batches.plan(epoch)
    assert len(plan) == batches.num_steps
    assert max(map(len, plan)) <= batch_size
    np.testing.assert_array_equal(np.sort(np.concatenate(plan)), np.arange(len(shapes)))


@settings(max_examples=60, deadline=None)
@given(
    splits(), st.integers(1, 9), st.integers(0, 5), st.sampled_from(["none", "leftovers", "all"])
)
def test_an_epoch_by_images_has_every_question_once_and_an_images_together(
    split, batch_size, epoch, mixing
):
    shapes, image_ids = split
    batches = TrainingSampler(shapes, batch_size, seed=3, mixing=mixing, image_ids=image_ids)
    plan = batches.plan(epoch)
    assert len(plan) == batches.num_steps
    np.testing.assert_array_equal(np.sort(np.concatenate(plan)), np.arange(len(shapes)))
    counts = dict(zip(*np.unique(image_ids, return_counts=True), strict=True))
    for rows in plan:  # at most its first and its last image are continued in other batches
        found, inside = np.unique(image_ids[rows], return_counts=True)
        parts = [image for image, n in zip(found, inside, strict=True) if n < counts[image]]
        ends = {image_ids[rows[0]], image_ids[rows[-1]]}
        assert mixing == "leftovers" or set(parts) <= ends


@settings(max_examples=40, deadline=None)
@given(splits(), st.integers(1, 9))
def test_a_global_batch_has_one_shape_and_only_leftovers_may_be_mixed(split, batch_size):
    shapes, _ = split
    for rows in TrainingSampler(shapes, batch_size, seed=0).plan(0):
        assert len(np.unique(shapes[rows], axis=0)) == 1
    plan = TrainingSampler(shapes, batch_size, seed=0, mixing="leftovers").plan(0)
    pure = [rows for rows in plan if len(np.unique(shapes[rows], axis=0)) == 1]
    _, counts = np.unique(shapes, axis=0, return_counts=True)
    assert len([rows for rows in pure if len(rows) == batch_size]) >= (counts // batch_size).sum()
    assert len([rows for rows in plan if len(rows) < batch_size]) <= 1


@settings(max_examples=60, deadline=None)
@given(splits(), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3))
def test_slices_of_all_processes_make_the_global_batches(split, batch_size, world_size, micro):
    shapes, _ = split
    batches = TrainingSampler(shapes, batch_size, seed=1)
    plan = batches.plan(2)
    dealt = [batches.micro_batches(2, 0, rank, world_size, micro) for rank in range(world_size)]
    assert {len(own) for own in dealt} == {len(plan) * micro}  # nobody waits for nobody
    for step, rows in enumerate(plan):
        slices = [each for own in dealt for each in own[step * micro : (step + 1) * micro]]
        real = [each for each in slices if each.weight > 0]
        np.testing.assert_array_equal(np.concatenate([each.rows for each in real]), rows)
        assert all(each.weight == 1 / len(rows) for each in real)
        assert all(len(each.rows) == 1 for each in slices if each.weight == 0)
        sizes = [len(each.rows) for each in real]
        assert max(sizes) - min(sizes) <= 1


def test_any_step_can_be_resumed_by_a_new_object():
    shapes = SHAPES[np.random.default_rng(0).integers(0, 4, 200)]
    whole = TrainingSampler(shapes, 8, seed=5)
    whole.plan(0)
    for step in (0, 1, 17, whole.num_steps):  # after the last one there is none left
        resumed = TrainingSampler(shapes, 8, seed=5).micro_batches(3, first_step=step)
        for batch, rows in zip(resumed, whole.plan(3)[step:], strict=True):
            np.testing.assert_array_equal(batch.rows, rows)


def test_epochs_and_seeds_differ_and_shapes_are_shuffled():
    shapes = np.repeat(SHAPES, 80, axis=0)

    def plan(seed, epoch):
        return np.concatenate(TrainingSampler(shapes, 8, seed).plan(epoch)).tolist()

    assert plan(0, 0) == plan(0, 0)
    assert len({tuple(plan(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4
    order = [tuple(shapes[rows[0]]) for rows in TrainingSampler(shapes, 8, 0).plan(0)]
    assert sum(a != b for a, b in itertools.pairwise(order)) > 15


@settings(max_examples=60, deadline=None)
@given(splits(), st.integers(1, 9), st.integers(1, 5), st.sampled_from(["none", "all"]))
def test_evaluation_visits_every_question_once_for_any_number_of_processes(
    split, batch_size, world_size, mixing
):
    shapes, image_ids = split
    alone = evaluation_batches(image_ids, shapes, batch_size, mixing=mixing)
    dealt = [
        evaluation_batches(image_ids, shapes, batch_size, rank, world_size, mixing)
        for rank in range(world_size)
    ]
    together = [batch.rows.tolist() for own in dealt for batch in own]
    assert sorted(itertools.chain(*together)) == list(range(len(shapes)))
    assert sorted(together) == sorted(batch.rows.tolist() for batch in alone)


@settings(max_examples=60, deadline=None)
@given(splits(), st.integers(1, 9))
def test_the_questions_of_an_image_stay_together(split, batch_size):
    shapes, image_ids = split
    where: dict[int, list[int]] = {}
    for number, batch in enumerate(evaluation_batches(image_ids, shapes, batch_size)):
        assert len(batch.rows) <= batch_size
        assert len(np.unique(shapes[batch.rows], axis=0)) == 1
        for image_id in np.unique(image_ids[batch.rows]).tolist():
            where.setdefault(image_id, []).append(number)
    for image_id, numbers in where.items():
        questions = (image_ids == image_id).sum()
        assert len(numbers) <= -(-questions // batch_size)


def test_rare_shapes_of_a_set_as_large_as_vqa_v2_add_few_steps():
    counts = [190_000, 70_000, 60_000, 25_000, 20_000] + [2_000] * 30 + [37] * 30
    shapes = np.repeat([(1, n + 1) for n in range(len(counts))], counts, axis=0)
    steps = TrainingSampler(shapes, 64, seed=0).num_steps
    fewest = TrainingSampler(shapes, 64, seed=0, mixing="all").num_steps
    assert fewest < steps < 1.01 * fewest
    assert TrainingSampler(shapes, 64, seed=0, mixing="leftovers").num_steps == fewest


def test_settings_that_make_no_sense_are_rejected():
    with pytest.raises(ValueError, match="batch_size is 0"):
        TrainingSampler(SHAPES, 0, seed=0)
    with pytest.raises(ValueError, match="expected one of none, leftovers, all"):
        TrainingSampler(SHAPES, 1, seed=0, mixing="some")
    with pytest.raises(ValueError, match="no questions"):
        TrainingSampler(SHAPES[:0], 1, seed=0)
    assert evaluation_batches(np.zeros(0, dtype=np.int64), SHAPES[:0], 4) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 2, "world_size": 2}, "rank is 2, expected 0 to 1"),
        ({"rank": -1, "world_size": 2}, "rank is -1"),
        ({"world_size": 0}, "world_size is 0, expected at least 1"),
        ({"first_step": -1}, "first_step is -1, expected 0 to 2"),
        ({"first_step": 3}, "first_step is 3, expected 0 to 2"),
        ({"num_micro_batches": 0}, "num_micro_batches is 0, expected at least 1"),
    ],
)
def test_a_part_of_the_work_that_there_is_not_is_rejected(options, message):
    shapes = np.full((5, 2), 3)
    with pytest.raises(ValueError, match=message):
        TrainingSampler(shapes, 3, seed=0).micro_batches(0, **options)
    if "rank" in options or "world_size" in options:
        with pytest.raises(ValueError, match=message):
            evaluation_batches(np.arange(5), shapes, 3, **options)


@settings(max_examples=40, deadline=None)
@given(splits(), st.integers(1, 9), st.integers(1, 40), st.integers(0, 3))
def test_a_limited_epoch_is_the_beginning_of_a_whole_one(split, batch_size, limit, epoch):
    shapes, _ = split
    whole = TrainingSampler(shapes, batch_size, seed=3).plan(epoch)
    limited = TrainingSampler(shapes, batch_size, seed=3, limit=limit)
    assert limited.num_steps == min(limit, len(whole))
    for one, other in zip(limited.plan(epoch), whole, strict=False):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=60, deadline=None)
@given(splits(), st.integers(1, 9), st.integers(1, 40), st.sampled_from(["none", "all"]))
def test_rows_of_a_limited_evaluation_are_of_whole_batches_from_the_first_to_the_last(
    split, batch_size, limit, mixing
):
    shapes, image_ids = split
    batches = evaluation_batches(image_ids, shapes, batch_size, mixing=mixing)
    rows = spread_rows(image_ids, shapes, batch_size, limit, mixing)
    assert (np.diff(rows) > 0).all()
    chosen = [n for n, each in enumerate(batches) if np.isin(each.rows, rows).all()]
    assert len(chosen) == min(limit, len(batches))
    assert sum(len(batches[n].rows) for n in chosen) == len(rows)
    assert chosen[0] == 0
    assert limit == 1 or chosen[-1] == len(batches) - 1
    again = evaluation_batches(image_ids[rows], shapes[rows], batch_size, mixing=mixing)
    assert len(again) <= limit


def test_no_question_has_no_limited_rows():
    none = np.empty(0, dtype=np.int64)
    assert len(spread_rows(none, none.reshape(0, 2), 4, 3)) == 0
