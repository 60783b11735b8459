"""docs/cluster.md, the containers and the citation agree with the code."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from data.io.page_block import read_block
from scripts.cost import main
from tests.small_models import run_here

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "cluster.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_estimate_in_the_document_is_what_make_cost_prints():
    """In a process of its own: torch counts other memory once its compiler was imported."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.cost"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    written = read_block(DOCUMENT, "make cost")
    assert written == f"```\n{done.stdout}```\n", 'run make cost ARGS="document=docs/cluster.md"'


def test_a_document_without_a_block_ends_in_one_sentence(tmp_path):
    (tmp_path / "plain.md").write_text("nothing", encoding="utf-8")
    small = ["model=tiny", "grid=[8,10]", "largest_grid=[8,10]", "gpus=[1]", "question_length=3"]
    code, _, error = run_here(main, *small, f"document={tmp_path}/plain.md", quiet=[])
    assert code == 2
    assert "needs one block" in error
    assert (tmp_path / "plain.md").read_text() == "nothing"


def test_the_settings_that_the_document_names_exist():
    named = set(re.findall(r"(?:runtime|optim)\.[a-z_]+", DOCUMENT.read_text("utf-8")))
    assert {"runtime.stage_to", "runtime.reader", "runtime.micro_batches"} <= named
    for name in named:
        group, key = name.split(".")
        files = (ROOT / "configs" / group).glob("*.yaml")
        assert any(key in yaml.safe_load(file.read_text("utf-8")) for file in files), name


def test_containers_have_every_package_what_the_tests_read_and_the_pinned_versions():
    recipe = (ROOT / "apptainer.def").read_text(encoding="utf-8")
    packages = [name[:-1] for name in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]
    files = ["pyproject.toml", "constraints.txt", "Makefile", PROJECT["project"]["readme"]]
    others = ["examples", "tests", "docs", "CITATION.cff", "Dockerfile", ".dockerignore"]
    for name in [*packages, *files, *others, "apptainer.def"]:
        assert f"    {name} /app/{name}\n" in recipe
        assert (ROOT / name).exists()
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    base = re.search(r"^From: (.*)$", recipe, re.MULTILINE).group(1)
    assert f"FROM {base}\n" in docker
    assert "make install" in docker
    assert "make install" in recipe
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".venv", "datasets", "runs"} <= set(ignored)
    assert not set(packages) & set(ignored)


def test_the_citation_is_of_the_paper_and_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert str(citation["version"]) == PROJECT["project"]["version"]
    assert citation["license"] == PROJECT["project"]["license"]
    paper = citation["preferred-citation"]
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Farinhas", "Martins", "Aguiar"]
    assert "2104.03046" in paper["url"]
    assert paper["year"] == 2021
