"""One process, two or three: every command that answers questions writes the same digits."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.vqa.data_folder import DataFolder
from mcan.runtime.distributed import World
from scripts.evaluate import evaluate
from scripts.export import export
from scripts.human_attention import compare_with_people
from scripts.select_lambda import select_lambda
from scripts.train import train
from tests.mcan.runtime.together import run_together
from tests.scripts.test_human_attention import spoil_map
from tests.small_models import compose, listing
from tests.small_runs import ALONE
from tests.small_runs import compose as compose_run
from tests.small_runs import settings as small_settings

# 60 questions in batches of 7: the processes get unequal parts, and the last batches are small
COMMANDS = {
    "evaluate": (evaluate, "checkpoint={run} attention.lam=0.3"),
    "export": (export, "checkpoints=[{run},{other}]"),
    "select_lambda": (select_lambda, "checkpoint={run} grid.count=2 folds=3"),
    "human_attention": (compare_with_people, "checkpoints=[{run},{other}] resamples=100"),
}
CHANGING = {"validation_questions_per_second", "num_processes"}


def compose_all(run: Path, other: Path) -> dict[str, Any]:
    """The settings of every command."""
    return {
        name: compose(
            name, [*words.format(run=run, other=other).split(), "runtime.evaluation_batch_size=7"]
        )
        for name, (_, words) in COMMANDS.items()
    }


def answer_all(world: World, settings: dict[str, Any], folder: Path) -> None:
    """Every command, into a folder of its own."""
    for name, (work, _) in COMMANDS.items():
        work(replace(settings[name], output=str(folder / name)), world)


@pytest.mark.parametrize("name", [*COMMANDS, "train"])
def test_stores_are_copied_before_processes_join(
    name, peaky_run, discrete_run, small_dataset, tmp_path, monkeypatch
):
    """In a group, those on a machine that has its copies would wait for the others and give up."""
    copied = []

    def join(world, patience_minutes):
        copied.append(({path.name[:8] for path in tmp_path.glob("*.h5")}, patience_minutes > 0))
        raise FileNotFoundError("enough")

    monkeypatch.setattr(World, "join", join)
    splits = {"export": {"test2015"}, "train": {"train201", "val2014-"}}
    work, words = COMMANDS.get(name, (train, ""))
    words = words.format(run=peaky_run, other=discrete_run).split()
    stage = f"runtime.stage_to={tmp_path}"
    settings = (
        compose_run([*small_settings(small_dataset, tmp_path / "runs"), stage])
        if name == "train"
        else compose(name, [*words, stage])
    )
    with pytest.raises(FileNotFoundError, match="enough"):
        work(settings, ALONE)
    assert copied == [(splits.get(name, {"val2014-"}), True)]


def read_sentence(world: World, words: list[str]) -> str:
    """The error that a comparison with people ends with."""
    with pytest.raises(ValueError, match="is not a readable image") as error:
        compare_with_people(compose("human_attention", words), world)
    return str(error.value)


def stable(folder: Path) -> dict[str, bytes]:
    """All files, without the figures that change from run to run."""
    files = listing(folder)
    report = json.loads(files["evaluate/val.json"])
    for name in CHANGING:
        del report[name]
    files["evaluate/val.json"] = json.dumps(report).encode()
    return files


@pytest.mark.filterwarnings("ignore:a constant image")
def test_any_number_of_processes_writes_the_same_files_and_ends_alike_at_a_broken_map(
    peaky_run, discrete_run, small_dataset, tmp_path
):
    folders = [tmp_path / f"by_{size}" for size in (1, 2, 3)]
    settings = compose_all(peaky_run, discrete_run)
    jobs = [  # the largest first: no process waits for others to begin
        (size, answer_all, (settings, folders[size - 1])) for size in (3, 2, 1)
    ]
    copy = DataFolder(shutil.copytree(small_dataset, tmp_path / "copy"))
    expected = spoil_map(copy)  # its question is read by the second process alone
    broken = [f"checkpoints=[{discrete_run}]", f"data.root={copy.root}", f"output={tmp_path}/out"]
    (tmp_path / "exchange").mkdir()
    *_, errors = run_together([*jobs, (2, read_sentence, (broken,))], tmp_path / "exchange")
    assert errors[0] == errors[1]
    assert expected in errors[0]
    assert not (tmp_path / "out").exists()
    alone = stable(folders[0])
    assert set(alone) == {
        "evaluate/val.json",
        "evaluate/vqa_OpenEnded_mscoco_val2014_peaky_results.json",
        "export/vqa_OpenEnded_mscoco_test2015_peaky+discrete_results.json",
        "export/vqa_OpenEnded_mscoco_test-dev2015_peaky+discrete_results.json",
        "human_attention/val.csv",
        "human_attention/val.json",
        "select_lambda/table.csv",
        "select_lambda/table.json",
        "select_lambda/table.png",
    }
    for folder in folders[1:]:
        assert stable(folder) == alone
    reports = [json.loads((folder / "evaluate" / "val.json").read_text()) for folder in folders]
    assert [report["num_processes"] for report in reports] == [1, 2, 3]
