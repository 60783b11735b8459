"""Which package may import what: attention knows torch only, and only scripts joins them."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"attention", "mcan", "data", "figures", "scripts", "configs"}
ALLOWED = {
    "attention": {"attention", "torch"},
    "mcan": {"mcan", "attention", "torch", "numpy", "tqdm", "tensorboard"},
    # torchvision has the networks that describe images; see the test of its one place below
    "data": {"data", "torch", "torchvision", "numpy", "h5py", "PIL", "tqdm"},
    "figures": {"figures", "matplotlib", "numpy", "PIL"},
}


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name their package"
            yield node.module.split(".")[0]


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_it_may(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    allowed = ALLOWED[package] | set(sys.stdlib_module_names)
    wrong = {
        f"{f.relative_to(ROOT)}: {n}" for f in files for n in imported_names(f) if n not in allowed
    }
    assert not wrong


def test_only_scripts_touch_hydra():
    files = [f for package in OURS - {"scripts"} for f in (ROOT / package).rglob("*.py")]
    assert not [f for f in files if {"hydra", "omegaconf"} & set(imported_names(f))]


def test_torchvision_is_imported_in_one_place_and_only_when_a_network_is_built():
    files = [f for package in OURS for f in (ROOT / package).rglob("*.py")]
    importing = [f for f in files if "torchvision" in imported_names(f)]
    assert importing == [ROOT / "data" / "backbones" / "residual.py"]
    top_level = ast.parse(importing[0].read_text(encoding="utf-8")).body
    assert not [node for node in top_level if "torchvision" in getattr(node, "module", "")]


def test_no_file_is_a_drawer():
    drawers = {"utils.py", "misc.py", "helpers.py", "common.py"}
    assert not [f for package in OURS for f in (ROOT / package).rglob("*.py") if f.name in drawers]
