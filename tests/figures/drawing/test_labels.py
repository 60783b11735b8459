"""Labels beside points: none covers another, none leaves the picture."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from figures.drawing.labels import Box, place_labels

WIDTH, HEIGHT, DOT, SIZE = 210.0, 140.0, 6.0, (22.0, 10.0)
POINTS = st.lists(st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT)), min_size=1, max_size=4)


@given(POINTS)
def test_labels_stay_inside_and_cover_neither_each_other_nor_a_dot(points):
    boxes = place_labels(points, [SIZE] * len(points), WIDTH, HEIGHT, DOT)
    assert all(box.outside(WIDTH, HEIGHT) < 1e-6 for box in boxes)
    assert all(one.overlap(other) < 1e-6 for one, other in combinations(boxes, 2))
    dots = [Box(x, y, DOT, DOT) for x, y in points]
    assert all(box.overlap(dot) < 1e-6 for box in boxes for dot in dots)


def test_labels_of_one_and_the_same_point_are_all_readable():
    boxes = place_labels([(100.0, 70.0)] * 8, [SIZE] * 8, WIDTH, HEIGHT, DOT)
    assert all(one.overlap(other) == 0 for one, other in combinations(boxes, 2))


def test_overlap_is_the_common_area():
    assert Box(0, 0, 4, 2).overlap(Box(3, 1, 4, 2)) == 1
    assert Box(0, 0, 4, 2).overlap(Box(0, 0, 1, 1)) == 1
    assert Box(0, 0, 4, 2).overlap(Box(10, 0, 4, 2)) == 0
    assert Box(0, 0, 2, 2).outside(10, 10) == 3


def test_a_lonely_label_is_right_beside_its_point():
    (box,) = place_labels([(50.0, 50.0)], [SIZE], WIDTH, HEIGHT, DOT)
    assert box.y == 50
    assert 50 + DOT / 2 <= box.x - SIZE[0] / 2 <= 50 + DOT
