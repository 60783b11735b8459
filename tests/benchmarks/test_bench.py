"""The whole benchmark at toy sizes, through its command."""

import json
import tempfile
from pathlib import Path

import pytest

from benchmarks.measurement import Row
from benchmarks.table import write_markdown
from data.io.page_block import read_block
from scripts.bench import PAGE, main
from tests.small_models import run_here

NUM_ROWS = 2 + 3 + 8 + 3 + 1 + 5 + 5  # cold, two shares, crowded twice


@pytest.fixture
def scratch():
    """A folder with a short name: worker processes put sockets there, and those allow no other."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        yield Path(name)


def test_every_row_is_measured_written_and_nothing_else_is_left(tmp_path, scratch, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("TMPDIR", str(scratch))
    output = tmp_path / "bench.json"
    code, printed, error = run_here(main, "toy=true", f"output={output}", quiet=[])
    assert code == 0, error
    report = json.loads(output.read_text(encoding="utf-8"))
    assert report["toy"] is True
    assert len(report["table"]) == NUM_ROWS
    for row in report["table"]:
        assert row["work"] in printed
        assert row["against"] in printed
        assert len(row["values"]) >= 1
    assert all(each["median"] > 0 for part in report["details"].values() for each in part)
    assert [path for path in scratch.iterdir() if "torchinductor" not in path.name] == []


def test_a_row_is_reached_by_its_median():
    assert Row("a", "b", "≤ 0.5", (0.1, 0.5, 9.0)).reached
    assert not Row("a", "b", "≤ 0.5", (0.1, 0.6, 0.6)).reached
    assert Row("a", "b", "≥ 2", (1.0, 2.0, 3.0)).reached
    assert not Row("a", "b", "≥ 2", (1.0, 1.9, 3.0)).reached


def test_the_table_is_markdown_and_the_page_has_a_place_for_it():
    rows = [Row("work", "baseline", "≥ 2", (3.0, 4.0))]
    text = write_markdown(rows, "a machine")
    assert text.startswith("a machine\n\n| work | against |")
    assert text.endswith("\n| work | baseline | ≥ 2 | 3.5 | 3 – 4 | yes |\n")
    assert "| work | against |" in read_block(PAGE, "make bench")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["parts=[tails]"], "there is no part 'tails' to measure; there are loading, scoring"),
        (
            ["toy=true", "document=true"],
            "which needs all parts, or parts=[scale], and not toy=true",
        ),
    ],
)
def test_mistakes_are_said_in_a_sentence(words, message, tmp_path):
    output = tmp_path / "bench.json"
    code, _, error = run_here(main, *words, f"output={output}", quiet=[])
    assert code == 2
    assert message in error
    assert not (tmp_path / "bench.json").exists()
