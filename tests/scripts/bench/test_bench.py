"""The whole benchmark at toy sizes, through its command."""

import json
import tempfile
from pathlib import Path

import pytest

from scripts.bench.__main__ import main
from scripts.bench.measurement import Measurement, Row
from scripts.bench.table import END, START, update_page, write_markdown
from tests.small_models import run_here

NUM_ROWS = 2 + 2 + 2 + 3 + 1 + 5


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


def test_the_page_gets_a_new_table_and_keeps_the_rest(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"above\n{START}\nold\n{END}\nbelow\n", encoding="utf-8")
    levers = [Measurement("step without a lever", (1.5,), "×")]
    rows = [Row("work", "rival", "≥ 2", (3.0, 4.0))]
    update_page(page, write_markdown(rows, levers, "a machine"))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"above\n{START}\na machine\n")
    assert text.endswith(f"{END}\nbelow\n")
    assert "| work | rival | ≥ 2 | 3.5 | 3 – 4 | yes |" in text
    assert "| step without a lever | 1.5 |" in text
    assert "old" not in text
    page.write_text("no place", encoding="utf-8")
    with pytest.raises(ValueError, match="has no place for the table"):
        update_page(page, "new")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["parts=[tails]"], "there is no part 'tails' to measure; there are loading, scoring"),
        (["toy=true", "document=true"], "which needs all parts, and not toy=true"),
    ],
)
def test_mistakes_are_said_in_a_sentence(words, message, tmp_path):
    output = tmp_path / "bench.json"
    code, _, error = run_here(main, *words, f"output={output}", quiet=[])
    assert code == 2
    assert message in error
    assert not (tmp_path / "bench.json").exists()


def test_the_committed_page_has_a_place_for_the_table():
    text = Path("docs/performance.md").read_text(encoding="utf-8")
    assert text.count(START) == text.count(END) == 1
