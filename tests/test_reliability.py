"""docs/reliability.md and tests/faults/ agree: every fault has a row, every row a test."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADER = ["fault", "what happens", "test"]


def read_rows():
    """(fault, what happens, tests) of every row of the tables in the page."""
    lines = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("|") and set(line) - set("|-")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in tables]
    rows = [row for row in cells if row != HEADER]
    assert all(len(row) == len(HEADER) for row in rows), rows
    return [(fault, happens, re.findall(r"`(\S+?)`", tests)) for fault, happens, tests in rows]


def list_tests(folder):
    """`tests/…/test_x.py::test_name` of every test below a folder."""
    return {
        f"{path.relative_to(ROOT)}::{node.name}"
        for path in folder.rglob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_row_names_tests_that_exist():
    there = list_tests(ROOT / "tests")
    for fault, happens, tests in read_rows():
        assert fault, tests
        assert happens, fault
        assert tests, fault
        assert not [name for name in tests if name not in there], fault


def test_every_fault_that_is_tested_has_a_row():
    named = {name for _, _, tests in read_rows() for name in tests}
    assert not list_tests(ROOT / "tests" / "faults") - named


def test_no_fault_has_two_rows():
    faults = [fault for fault, _, _ in read_rows()]
    assert len(set(faults)) == len(faults)
