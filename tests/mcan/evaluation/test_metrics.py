"""The list of metrics, and files with older names."""

import json
import math
from dataclasses import fields

import pytest
import torch

from data.vqa.questions import Annotation
from mcan.evaluation.metric_names import rename_old_metrics
from mcan.evaluation.metrics import (
    METRICS,
    AnsweredSplit,
    compute_metrics,
    count_objects,
    perplexity,
    register_metric,
    sparsity,
)
from mcan.evaluation.predict import Predictions


def test_no_two_metrics_have_one_name_or_give_values_of_one_name(monkeypatch):
    monkeypatch.setattr(METRICS, "values", {"first": lambda answered: {"accuracy": 1.0}})
    with pytest.raises(ValueError, match="a metric named 'first' is already registered"):
        register_metric("first")(json.dumps)
    register_metric("second")(lambda answered: {"accuracy": 2.0})
    with pytest.raises(ValueError, match="'second' gives 'accuracy', which another one gives too"):
        compute_metrics(None)


def test_sparsity_is_the_mean_over_questions_and_absent_where_it_is_not_defined():
    undefined = torch.full((4,), torch.nan)
    shares = torch.tensor([0.0, 0.5, 0.75, 1.0])
    columns = dict.fromkeys(["question_ids", "answers", "probabilities"])
    columns |= dict.fromkeys(["num_components", "num_collapsed", "perplexity"])
    for zero, outside, expected in (
        (shares, undefined, {"zero_weight_share": 0.5625}),
        (undefined, shares / 3, {"outside_support_share": 0.1875}),
        (undefined, undefined, {}),
    ):
        predictions = Predictions(**columns, zero_weight_share=zero, outside_support_share=outside)
        answered = AnsweredSplit(predictions, {}, [], None, {}, 1)
        assert sparsity(answered) == expected


def test_perplexity_is_the_median_over_questions_and_absent_for_an_ensemble():
    columns = {each.name: None for each in fields(Predictions)}
    for found, expected in (
        ([9.0, 1.0, 2.5], {"perplexity": 2.5}),
        ([math.nan] * 3, {}),
    ):
        predictions = Predictions(**{**columns, "perplexity": torch.tensor(found)})
        assert perplexity(AnsweredSplit(predictions, {}, [], None, {}, 1)) == expected


def test_a_question_that_counts_is_about_the_objects_it_counts():
    rows = [("how many", "0"), ("how many people are", "12"), ("how many", "lots"), ("is", "1")]
    annotations = [
        Annotation(number, 1, question_type, "number", answer, (answer,) * 10)
        for number, (question_type, answer) in enumerate(rows)
    ]
    assert count_objects(AnsweredSplit(None, {}, annotations, None, {}, 1)) == {0: 0, 1: 12}


def test_a_line_of_metrics_with_older_names_is_read_under_the_new_ones():
    old = {
        "epoch": 3,
        "accuracy_by_type": {"yes/no": 70.1},
        "component_counts": [8, 1, 1],
        "component_shares": "80.0 / 10.0 / 10.0 %",
    }
    new = {
        "epoch": 3,
        "accuracy_by_answer_type": {"yes/no": 70.1},
        "component_counts": [8, 1, 1],
        "component_shares": [80.0, 10.0, 10.0],
    }
    assert rename_old_metrics(old) == new
    assert rename_old_metrics(new) == new


def test_reports_of_evaluate_and_rows_of_lambda_with_older_names_are_read_too():
    groups = {
        "all questions": {"questions": 4, "counts": [3, 1], "shares": [75.0, 25.0]},
        "one object": {"questions": 2, "counts": [2, 0], "shares": [100.0, 0.0]},
    }
    assert rename_old_metrics({"components": groups, "answers_per_second": 9.5}) == {
        "component_counts": [3, 1],
        "component_shares": [75.0, 25.0],
        "component_counts_by_objects": {"one object": [2, 0]},
        "validation_questions_per_second": 9.5,
    }
    assert rename_old_metrics({"lam": 1.0, "shares": [60.0, 40.0]}) == {
        "lam": 1.0,
        "component_shares": [60.0, 40.0],
    }
