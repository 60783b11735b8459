"""Made-up data of VQA-v2's counts: complete, and like the real one in what takes time."""

import numpy as np
import pytest

from benchmarks.parts import scale
from data.features.store_set import open_stores
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    scale.write_dataset(root, 0.002)
    return DataFolder(root)


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_every_question_has_an_image_with_features(folder, split):
    num_questions, num_images = scale.COUNTS[split]
    questions = folder.read_questions(split)
    assert len(questions) == pytest.approx(0.002 * num_questions, abs=1)
    stores = open_stores([folder.store(split)])
    assert len(stores.image_ids) == pytest.approx(0.002 * num_images, abs=1)
    np.testing.assert_array_equal(np.unique(questions.image_ids), stores.image_ids)


def test_test_dev_is_a_part_of_test(folder):
    part, whole = folder.read_questions("test-dev"), folder.read_questions("test")
    assert len(part) == pytest.approx(0.002 * scale.NUM_TEST_DEV, abs=1)
    assert {*part.ids.tolist()} < {*whole.ids.tolist()}


def test_words_and_answers_are_frequent_or_rare_as_in_language(folder):
    annotations = folder.match_annotations("train")
    agreeing = [len(set(each.answers)) for each in annotations]
    assert 3 < np.mean(agreeing) < 7
    words = prepare_words(folder, min_answer_count=3)
    assert 20 < len(words.answers) < len({each.multiple_choice_answer for each in annotations})
    texts = folder.read_questions("train").texts
    assert len({*texts}) == pytest.approx(len(texts) / 3, rel=0.15)


def test_a_command_that_fails_says_what_it_printed():
    with pytest.raises(RuntimeError, match=r"scripts\.score failed: .*error: "):
        scale.run_command(["scripts.score"])
    seconds, megabytes = scale.run_command(["scripts.score", "--help"])
    assert seconds > 0
    assert megabytes > 1
