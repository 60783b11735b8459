"""What a training says of its data before it begins, and of what to run when it has ended."""

import shutil
import sys

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from data.files import write_json
from data.splits import Folder
from data.store import FeatureStore
from data.store_writer import StoreWriter
from data.words import prepare_words
from scripts import train
from scripts.cross_validation import Pick
from scripts.lambda_picture import mark_pick, scale_axis
from scripts.summary import suggest
from scripts.train import warn_of_threshold
from tests.data.official_files import make_question
from tests.small_runs import compose, settings


@pytest.fixture
def folder(small_dataset, tmp_path):
    """A copy of the small dataset that a test may change."""
    return Folder(shutil.copytree(small_dataset, tmp_path / "data"))


def rename_backbone(folder, split, backbone):
    """Write a store again as if another backbone had made its features."""
    path = folder.store(split)
    old = path.rename(path.with_suffix(".old"))
    with FeatureStore(old) as store:
        sizes = {int(each): store.size(int(each)) for each in store.image_ids}
        with StoreWriter(
            path, sizes, store.num_features, source="test", backbone=backbone, resize=None
        ) as copy:
            for image_id in sizes:
                copy.write(image_id, store.rows(image_id).copy())


def test_validation_features_of_another_backbone_are_refused_before_a_step(
    folder, tmp_path, monkeypatch, capsys
):
    rename_backbone(folder, "val", "R-50")
    words = settings(folder.root, tmp_path / "runs", "name=mixed", "optim.epochs=1")
    monkeypatch.setattr(sys, "argv", ["train", *words])
    with pytest.raises(SystemExit) as stop:
        train.main()
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert "val2014.h5 holds 69 features a cell of backbone R-50" in error
    assert "train2014.h5 69 features a cell of backbone patch" in error
    assert not (tmp_path / "runs" / "mixed").exists()


@pytest.mark.parametrize(("asked", "noticed"), [(3, True), (8, False), (2, False)])
def test_a_threshold_that_the_answers_were_not_built_with_is_noticed(
    folder, capsys, asked, noticed
):
    folder.answers.unlink()
    prepare_words(folder, 2)
    config = compose(["data=custom", f"data.root={folder.root}", f"data.answers_more_than={asked}"])
    warn_of_threshold(config.data)
    notice = f"{folder.answers} was built with data.answers_more_than=2, not 3; delete it"
    assert (notice in capsys.readouterr().out) == noticed


def test_what_to_run_next_can_be_run(tmp_path):
    config = compose(["data=custom", f"data.root={tmp_path}"])
    lines = suggest(config, tmp_path / "a run")
    assert f"  make evaluate CHECKPOINT='{tmp_path}/a run'" in lines
    assert "make export" not in " ".join(lines)  # there are no test questions
    write_json(Folder(tmp_path).questions("test"), {"questions": [make_question(5)]})
    assert f"  make export CHECKPOINT='{tmp_path}/a run'" in suggest(config, tmp_path / "a run")


@pytest.mark.parametrize("lam", [0.05, 1.0, 50.0])
def test_the_label_of_the_picked_lambda_stays_inside_its_panel(lam):
    figure = Figure(figsize=(8, 7))
    FigureCanvasAgg(figure)
    axes, lams = figure.subplots(), [0.05, 1.0, 50.0]
    axes.plot(lams, lams)
    mark_pick([axes], Pick(4, lam, 50.0, [lam], 50.0, 1.0, [50.0]), lams)
    scale_axis(axes, lams)
    figure.canvas.draw()
    (label,) = axes.texts
    panel, written = axes.get_window_extent(), label.get_window_extent()
    assert panel.x0 < written.x0
    assert written.x1 < panel.x1
