"""docs/architecture.md names what there is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (
    (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("<!-- equations")[0]
)
LINKS = re.findall(r"\[`@?([\w.]+)[^`]*`\]\(\.\./([\w/]+\.py)\)", PAGE)


def defined_names(path):
    """Functions, classes with their methods, and values that a module defines."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{n.name}" for n in node.body if hasattr(n, "name"))
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@pytest.mark.parametrize(("name", "file"), LINKS)
def test_a_name_stands_in_the_file_that_the_page_links(name, file):
    assert name in set(defined_names(ROOT / file))


def test_every_folder_of_the_page_exists_and_every_package_is_on_it():
    rows = re.findall(r"^\| `([\w/]+)/` \|", PAGE, re.MULTILINE)
    assert len(LINKS) > 30
    assert not [name for name in rows if not (ROOT / name).is_dir()]
    inner = {f"{top}/{each.name}" for top in ("mcan", "data") for each in (ROOT / top).glob("*/")}
    folders = {name for name in inner if "__pycache__" not in name}
    assert folders | {"attention", "figures", "benchmarks", "configs", "scripts"} <= set(rows)
