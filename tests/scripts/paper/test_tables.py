"""The tables of a report, and what stands beside them."""

import os
import re
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from data.vqa.data_folder import DataFolder
from mcan.evaluation.lambda_selection import Pick, Row
from mcan.training.summary import mean_and_deviation
from scripts.paper import __main__ as paper
from scripts.paper import published
from scripts.paper.accuracy_tables import name_hardest, tabulate_accuracy
from scripts.paper.provenance import describe_machine
from scripts.paper.report import Report, to_html, to_markdown
from scripts.paper.requirements import list_missing
from scripts.paper.tables import Table, tabulate_divergence, tabulate_lambda


def test_text_of_a_report_is_escaped():
    table = Table("<b>", ("a|b", "<i>"), (("x|y", "&"),), "<script>")
    report = Report("<h1>", [("<u>", "&")], [table], [], ["<s>"])
    assert not re.search(r"<(b|i|u|s|script)>", to_html(report))
    assert "x\\|y" in to_markdown(report, Path())


EVALUATED = {"accuracy": 80.0, "accuracy_by_answer_type": {"other": 80.0}, "num_questions": 7}


@pytest.mark.parametrize("data", ["shapes", "vqa_v2", "custom"])
def test_the_papers_numbers_are_beside_those_of_its_datasets_alone(data):
    bits = {"divergence_bits": {"mean": 0.5}}
    model = {"head": "multimodal", "blurred": False, "overall": bits}
    model["against_another_questions_map"] = bits
    compared = {"models": [model], "controls": {"centre": bits}}
    tables = [
        tabulate_accuracy({"unimodal": [EVALUATED]}, {"unimodal": [EVALUATED]}, EVALUATED, data),
        tabulate_divergence([compared], [], data),
        tabulate_lambda({}, data),
    ]
    rows = [
        ("unimodal", "80.00", "80.00", "80.00", "70.41 / 70.73"),
        ("centre: mean map of other images", "0.500", "–"),
        ("paper, VQA-v2", "1e-6", "5", "–", "80.8 / 12.4 / 4.4 / 2.4", "–"),
    ]
    if data == "custom":
        rows = [rows[0][:-1], rows[1][:-1], None]
    assert [table.rows[0] if table.rows else None for table in tables] == rows
    assert (("multimodal", "0.500", "0.54") in tables[1].rows) == (data != "custom")
    text = to_markdown(Report("", [], tables, [], []), Path())
    assert ("The paper's" in text) == (data != "custom")
    assert "## Not run" not in text


def test_a_model_of_one_component_has_a_row_without_lambda():
    pick = asdict(Pick(1, None, 80.0, [], 79.0, 0.5, []))
    rows = [asdict(Row(1, lam, 80.0, {}, [100.0], 0.0)) for lam in (0.5, 5.0)]
    table = tabulate_lambda({"cell": [{"run": "a", "picks": [pick], "rows": rows}]}, "custom")
    assert table.rows == (("a", "cell", "–", "79.00 ± 0.50", "100.0", "0.0"),)


def test_an_answer_type_of_ones_own_has_a_column():
    found = {**EVALUATED, "accuracy_by_answer_type": {"colour": 60.0, "yes/no": 90.0}}
    table = tabulate_accuracy({"a": [found]}, {"a": [found]}, found, "custom")
    assert table.header == ("attention", "yes/no", "colour", "overall", "shown other images")


@pytest.mark.parametrize("dataset", ["shapes", "vqa_v2"])
def test_what_the_paper_has_in_addition_is_said_to_be_not_run(dataset, small_dataset):
    (settings,) = paper.main.compose([f"dataset={dataset}"])
    missing = list_missing(settings, DataFolder(small_dataset), "val")
    assert "test-standard: needs a submission" in missing[0]
    assert len(missing) == 1 + (dataset == "shapes")


def test_the_processors_of_a_report_are_those_that_it_may_use(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {4, 7, 9})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert describe_machine().startswith("3 processors ")


def test_the_hardest_template_is_the_lowest_of_any_seed():
    seeds = [{"accuracy_by_template": {"a": 80.0, "b": 70.0}}, {"accuracy_by_template": {"a": 65}}]
    assert name_hardest(seeds) == "a 65.00"
    assert name_hardest([{}]) == "–"


def test_the_deviation_is_over_seeds():
    assert mean_and_deviation([80.0, 84.0]) == "82.00 ± 2.83"
    assert mean_and_deviation([80.0]) == "80.00"


def test_published_accuracies_are_averages_of_their_types():
    """Overall lies between the types; shares of types that explain it exist for both splits."""
    for table in (published.TEST_DEV, published.TEST_STANDARD):
        for row in table.values():
            assert row["number"] < row["overall"] < row["yes/no"]
    assert sum(published.SHARES) == pytest.approx(100)
