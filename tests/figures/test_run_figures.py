"""The figures of a finished run, which may fail without failing the run."""

import shutil

import pytest

from data.vqa.data_folder import DataFolder
from figures.run_figures import draw_run_figures
from tests.small_models import listing


@pytest.mark.parametrize("number", [0, 2], ids=["discrete", "multimodal"])
def test_figures_of_one_model_are_drawn_into_a_folder(
    models, small_dataset, runtime, tmp_path, number
):
    folder, output = DataFolder(small_dataset), tmp_path / "figures"
    written = draw_run_figures(models[number], folder, output, runtime, num=2)
    assert len(written) == 2
    assert set(listing(output)) == {path.name for path in written}
    assert draw_run_figures(models[number], folder, output, runtime, num=2) == written


def test_figures_that_cannot_be_drawn_are_a_notice(
    models, small_dataset, runtime, tmp_path, capsys, monkeypatch
):
    output = tmp_path / "figures"
    folder = DataFolder(shutil.copytree(small_dataset, tmp_path / "data"))
    shutil.rmtree(folder.root / "images")
    assert draw_run_figures(models[0], folder, output, runtime) == []
    printed = capsys.readouterr().out
    assert printed.startswith("no figures: ")
    assert len(printed.splitlines()) == 1
    monkeypatch.setattr("figures.requirements.importlib.util.find_spec", lambda name: None)
    assert draw_run_figures(models[0], DataFolder(small_dataset), output, runtime) == []
    expected = "no figures: drawing needs matplotlib: .venv/bin/pip install -e '.[plot]'\n"
    assert capsys.readouterr().out == expected
    assert not output.exists()
