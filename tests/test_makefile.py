"""`make install` starts from a Python that every dependency runs under, or with a site's torch."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.small_runs import ROOT

# not imported: that would hide setuptools' distutils, which torch.compile needs, from all tests
PIP = Path(sysconfig.get_path("purelib"), "pip")


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
    (tmp_path / "scripts" / "cluster").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "scripts/cluster/site_torch.py"):
        shutil.copy(ROOT / name, tmp_path / name)
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


def test_a_backbone_of_timm_installs_the_extra_and_others_do_not(project):
    for backbone, expected in {"timm:test_vit": True, "r50": False}.items():
        done = subprocess.run(
            ["make", "-n", "extract", f"BACKBONE={backbone}", f"PYTHON={sys.executable}"],
            cwd=project,
            capture_output=True,
            text=True,
        )
        assert ("-e '.[timm]'" in done.stdout) is expected, done.stdout
        assert f"backbone='{backbone}'" in done.stdout


def make(project, *words):
    words = ["make", "--no-print-directory", *words]  # which a make that runs the tests turns on
    return subprocess.run(words, cwd=project, capture_output=True, text=True)


def test_a_sites_torch_is_seen_in_the_environment_and_its_version_is_not_pinned(project):
    printed = make(project, "-n", "install", "TORCH=site").stdout
    assert " -m venv --system-site-packages .venv\n" in printed
    assert " install --quiet --disable-pip-version-check -c .venv/constraints.txt -e " in printed
    plain = make(project, "-n", "install").stdout
    assert " -m venv .venv\n" in plain
    assert "-c constraints.txt -e " in plain


def test_an_environment_keeps_the_kind_of_torch_it_was_made_with(project):
    (project / ".venv").mkdir()
    (project / ".venv" / ".site").touch()
    (project / ".venv" / ".installed").touch()
    assert "-c .venv/constraints.txt -e '.[demo]'" in make(project, "-n", ".venv/.demo").stdout
    assert (
        "TORCH=wheel must be site as .venv was made so"
        in make(project, "-n", "install", "TORCH=wheel").stderr
    )
    (project / ".venv" / ".site").unlink()
    done = make(project, "install", "TORCH=site")
    assert (done.returncode, done.stdout) == (2, "")
    assert "TORCH=site must be wheel as .venv was made so (make clean removes it)" in done.stderr


def check_torch(project, version, code=""):
    """The check beside a torch of that version, which runs `code` on import."""
    place = project / "site"
    (place / "torch").mkdir(parents=True)
    (place / "torch" / "__init__.py").write_text(code)
    if version:
        record = place / f"torch-{version}.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Name: torch\nVersion: {version}\n")
    (project / "alone").mkdir()
    (project / "alone" / "pip").symlink_to(PIP)  # without what is installed beside it
    return subprocess.run(
        [sys.executable, "-S", "scripts/cluster/site_torch.py"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{place}:{project / 'alone'}"},
        capture_output=True,
        text=True,
    )


def test_the_versions_of_a_site_replace_the_pinned_ones(project):
    done = check_torch(project, "2.14.0+site.1")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("torch")] == ["torch==2.14.0+site.1"]
    pinned = (project / "constraints.txt").read_text().splitlines()
    assert {line for line in pinned if not line.startswith("torch")} < set(lines)


@pytest.mark.parametrize(
    ("version", "code", "sentence"),
    [
        ("2.9.1", "", "the site's torch is 2.9.1, and 2.13 or newer is needed"),
        ("2.13.0a0+nv", "", "the site's torch is 2.13.0a0+nv, and 2.13 or newer is needed"),
        ("", "", "torch imports here, but pip has no record of it"),
        ("2.14.0", "raise OSError('libcudart.so')", "torch does not import here (libcudart.so)"),
    ],
)
def test_a_torch_that_cannot_be_used_is_one_sentence(project, version, code, sentence):
    done = check_torch(project, version, code)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {sentence}")
    assert done.stderr.count("\n") == 1
