"""`make install` starts from a Python that every dependency runs under."""

import shutil
import subprocess
import sys

import pytest

from tests.small_runs import ROOT


def pretend_python(path, minor):
    """An interpreter that says it is Python 3.<minor>, and makes no environment."""
    pretend = f"import sys; sys.version_info = (3, {minor}, 0); exec(sys.argv[1])"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] || exit 9\nexec {sys.executable} -c "{pretend}" "$2"\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.mark.parametrize("minor", [10, 14])
def test_another_python_is_refused_before_anything_is_made(project, minor):
    python = pretend_python(project / "python", minor)
    done = subprocess.run(
        ["make", "install", f"PYTHON={python}"], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "error: Python 3.11, 3.12 or 3.13 with the venv module was not found" in done.stderr
    assert not (project / ".venv").exists()


def test_the_first_python_on_the_path_that_fits_is_chosen(project):
    for name, minor in (("python3", 14), ("python3.13", 14), ("python3.12", 12)):
        pretend_python(project / name, minor)
    done = subprocess.run(
        ["make", "-n", "install"],
        cwd=project,
        env={"PATH": f"{project}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert "|| python3.12 -m venv" in done.stdout
