"""One process, two or three: evaluate, export and lambda write the same digits."""

import json
from pathlib import Path

import pytest

from mcan.runtime.distributed import World
from scripts.evaluate import evaluate
from scripts.export import export
from scripts.select_lambda import select_lambda
from tests.mcan.runtime.together import run_together
from tests.small_models import compose, listing

WORK = {"evaluate": evaluate, "export": export, "select_lambda": select_lambda}
# 60 questions in batches of 7: the processes get unequal parts, and the last batches are small
OPTIONS = {
    "evaluate": ["attention.lam=0.3"],
    "export": [],
    "select_lambda": ["grid.count=2", "folds=3"],
}
CHANGING = {"validation_questions_per_second", "num_processes"}


def answer_all(world: World, run: Path, other: Path, folder: Path) -> None:
    """Every command, into a folder of its own."""
    for name, work in WORK.items():
        words = [f"checkpoint={run}", f"output={folder / name}", *OPTIONS[name]]
        if name == "export":
            words = [f"checkpoints=[{run},{other}]", *words[1:]]
        work(compose(name, [*words, "runtime.evaluation_batch_size=7"]), world)


def stable(folder: Path) -> dict[str, bytes]:
    """All files, without the figures that change from run to run."""
    files = listing(folder)
    report = json.loads(files["evaluate/val.json"])
    for name in CHANGING:
        del report[name]
    files["evaluate/val.json"] = json.dumps(report).encode()
    return files


@pytest.mark.filterwarnings("ignore:a constant image")
def test_any_number_of_processes_writes_the_same_files(peaky_run, discrete_run, tmp_path):
    folders = [tmp_path / f"by_{size}" for size in (1, 2, 3)]
    jobs = [  # the largest first: no process waits for others to begin
        (size, answer_all, (peaky_run, discrete_run, folders[size - 1])) for size in (3, 2, 1)
    ]
    (tmp_path / "exchange").mkdir()
    run_together(jobs, tmp_path / "exchange")
    alone = stable(folders[0])
    assert set(alone) == {
        "evaluate/val.json",
        "evaluate/vqa_OpenEnded_mscoco_val2014_peaky_results.json",
        "export/vqa_OpenEnded_mscoco_test2015_peaky+discrete_results.json",
        "export/vqa_OpenEnded_mscoco_test-dev2015_peaky+discrete_results.json",
        "select_lambda/table.csv",
        "select_lambda/table.json",
        "select_lambda/table.png",
    }
    for folder in folders[1:]:
        assert stable(folder) == alone
    reports = [json.loads((folder / "evaluate" / "val.json").read_text()) for folder in folders]
    assert [report["num_processes"] for report in reports] == [1, 2, 3]
