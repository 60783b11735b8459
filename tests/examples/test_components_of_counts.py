"""K* beside what questions count, from the arrays that `make attention` keeps."""

import json
import sys

import h5py
import numpy as np
import pytest

from data.vqa.layout import VQA_V2
from examples import components_of_counts


@pytest.fixture
def counting(tmp_path):
    """Six questions that count and one that does not; as many components gain as were counted."""
    counts = [0, 1, 1, 2, 3, 4]
    annotations = [
        {
            "question_id": number,
            "image_id": 1,
            "question_type": "how many",
            "answer_type": "number",
            "multiple_choice_answer": str(count),
            "answers": [{"answer": str(count)}] * 10,
        }
        for number, count in enumerate(counts)
    ]
    annotations.append({**annotations[0], "question_id": 6, "question_type": "is"})
    path = tmp_path / VQA_V2.fill(VQA_V2.annotations, "val")
    path.write_text(json.dumps({"annotations": annotations}), encoding="utf-8")
    gains = [[2.0 * min(k, count) for k in range(4)] for count in [0, 0, 0, 1, 2, 3, 3]]
    with h5py.File(tmp_path / "val.h5", "w") as file:
        file["question_ids"] = np.arange(7)
        file["candidates/log_likelihood"] = np.array(gains)
    return tmp_path


def test_components_that_follow_the_counts_are_seen_to_do_so(counting, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["…", str(counting / "val.h5"), str(counting)])
    components_of_counts.main()
    lines = {line[:20].strip(): line[20:].split() for line in capsys.readouterr().out.splitlines()}
    assert lines["questions"] == ["1", "2", "1", "2", "0"]
    assert lines["0.5"] == ["1.00", "1.00", "2.00", "3.50", "–", "1.00"]
    assert lines["10% of the gain"] == ["1.00", "1.00", "2.00", "3.50", "–", "1.00"]


def test_a_correlation_with_what_never_changes_is_a_dash():
    counts = np.array([1, 2, 3])
    assert components_of_counts.correlate(np.ones(3), counts, 4) == "–"
    assert components_of_counts.correlate(counts, counts, 1) == "–"


@pytest.mark.parametrize("name", ["nothing.h5", "annotations.json", "without.h5"])
def test_what_is_no_file_of_arrays_is_one_sentence(tmp_path, monkeypatch, name):
    (tmp_path / "annotations.json").write_text("{}", encoding="utf-8")
    h5py.File(tmp_path / "without.h5", "w").close()
    monkeypatch.setattr(sys, "argv", ["…", str(tmp_path / name), str(tmp_path)])
    with pytest.raises(SystemExit, match=rf"error: .*{name} is no file of make attention with"):
        components_of_counts.main()


def test_every_rule_is_a_description_length():
    log_likelihood = np.random.default_rng(0).normal(size=(50, 4)).cumsum(1)
    found = components_of_counts.select_by_every_rule(log_likelihood)
    for row, likelihoods in enumerate(log_likelihood):
        gain = max(0.0, 2 * (likelihoods[3] - likelihoods[0]))
        for rule, lam in (("0.2", 0.2), ("30% of the gain", 0.3 * gain)):
            costs = [-2 * likelihoods[k - 1] + lam * k for k in (1, 2, 3, 4)]
            assert found[rule][row] == 1 + costs.index(min(costs))
