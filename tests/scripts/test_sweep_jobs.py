"""Where the jobs of a sweep run: on all GPUs of a machine, or on Slurm, or only on paper."""

import importlib
import shlex

import pytest
import torch

from configs.schema.groups import Launcher
from configs.schema.training import SweepJob
from data.io.atomic_files import read_json
from scripts.cluster import submit
from scripts.cluster.planned_run import PlannedRun
from scripts.cluster.shares import list_gpus, share_gpus
from scripts.sweep import job
from scripts.sweep.command_line import expand
from scripts.sweep.launchers import run_on_slurm
from scripts.sweep.local_jobs import run_here
from scripts.sweep.plan import Plan
from scripts.sweep.states import record_file
from tests.small_models import run_here as start

main = importlib.import_module("scripts.sweep.__main__").main

MODULE = "import os\nraise ValueError('sees ' + os.environ.get('CUDA_VISIBLE_DEVICES', 'all'))\n"


def test_the_gpus_are_those_that_the_process_sees(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert list_gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-8f,9")
    assert list_gpus() == ["3", "GPU-8f"]


@pytest.mark.parametrize(
    ("parallel", "gpus", "per_job", "shares"),
    [
        ("auto", "", 1, [""]),
        ("auto", "", 2, [""]),
        ("auto", "0", 1, [""]),
        ("auto", "0123", 1, ["0", "1", "2", "3"]),
        ("auto", "01234", 2, ["01", "23"]),
        ("auto", "01", 4, [""]),
        (3, "", 1, ["", "", ""]),
        (1, "01", 1, [""]),
        (3, "01", 1, ["0", "1", "0"]),
        (2, "01", 4, ["01", "01"]),
    ],
)
def test_auto_is_a_job_for_every_gpu_and_a_number_is_taken_as_it_is(
    parallel, gpus, per_job, shares
):
    assert share_gpus(parallel, list(gpus), per_job) == [list(share) for share in shares]


def test_jobs_at_the_same_time_see_their_own_gpu_and_all_are_run(tmp_path, monkeypatch, capfd):
    (tmp_path / "what_it_sees.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    plan = Plan(tmp_path / "s", expand(["seed=1,2,3", "modules=[what_it_sees]"]), [0.0], 5, 1)
    (tmp_path / "s" / "jobs").mkdir(parents=True)
    plan.save()
    assert run_here(plan, plan.jobs, [["4"], ["7"]]) == 0
    records = [read_json(record_file(plan, job)) for job in plan.jobs]
    assert [record["state"] for record in records] == ["failed"] * 3
    assert {record["reason"] for record in records} == {"error: sees 4", "error: sees 7"}
    printed = capfd.readouterr().out
    assert "seed_1: starts on GPU 4\nseed_2: starts on GPU 7\n" in printed
    assert printed.count(": failed\n") == 3


FAILS_WHEN_ASKED = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit("error: the disk is full"))
os.kill(os.getppid(), signal.SIGTERM)
while True:
    time.sleep(0.01)
"""


def test_a_job_that_fails_while_it_stops_is_recorded_so_and_no_other_begins(tmp_path, monkeypatch):
    plan = Plan(tmp_path / "s", expand(["seed=1,2"]), [0.0], 5, 1)
    (tmp_path / "s" / "jobs").mkdir(parents=True)
    plan.save()
    monkeypatch.setattr(PlannedRun, "start_arguments", lambda run, gpus: ["-c", FAILS_WHEN_ASKED])
    with pytest.raises(SystemExit, match="75"):
        job.main.run(SweepJob(sweep=str(plan.folder), job="seed_1"))
    record = read_json(record_file(plan, plan.jobs[0]))
    assert (record["state"], record["reason"]) == ("failed", "error: the disk is full")


def show(command, *words):
    code, printed, error = start(command, *words, "launcher.dry_run=true", quiet=[])
    assert (code, error) == (0, "")
    return printed


def test_a_dry_run_shows_what_would_be_submitted_and_needs_no_slurm(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    site = ["launcher=slurm", "launcher.partition=a100", "launcher.array_parallelism=2"]
    array = show(main, *site, "seed=1,2,3", "data.root=nowhere")
    assert "3 runs, 0 of them there already\n#!/bin/bash\n" in array
    assert "#SBATCH --array=0-2%2\n" in array
    assert "#SBATCH --partition=a100\n" in array
    assert array.splitlines()[-2] == "# the command"
    assert "hydra.launcher.array_parallelism=2 " in array.splitlines()[-1]
    script = show(submit.main, *site, "optim.batch_size=16", "data.root=nowhere")
    assert "#SBATCH --job-name=shapes-multimodal-seed1-root_nowhere-batch_size_16\n" in script
    file = "runs/slurm/shapes-multimodal-seed1-root_nowhere-batch_size_16.sh"
    assert script.splitlines()[-1] == f"sbatch --parsable {file}"
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_here_shows_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = show(main, "seed=1,2", "data.root=nowhere", "--config-dir=.").splitlines()
    assert [line.split("name=")[1] for line in lines[1:]] == ["seed_1", "seed_2"]
    assert all(" -m scripts.train figures=0 --config-dir=. seed=" in line for line in lines[1:])
    assert list(tmp_path.iterdir()) == []


def test_without_waiting_a_sweep_returns_once_every_job_is_submitted(tmp_path, monkeypatch):
    """With a stand-in for Slurm's commands, and submitit itself."""
    pytest.importorskip("submitit")
    for name, line in {"sbatch": "echo Submitted batch job 12", "squeue": "", "srun": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    plan = Plan(tmp_path / "s", expand(["seed=1,2"]), [0.0], 5, 1)
    (tmp_path / "s" / "jobs").mkdir(parents=True)
    plan.save()
    run_on_slurm(plan, plan.jobs, Launcher(name="slurm", gpus=1, array_parallelism=1), None)
    place = tmp_path / "s" / "hydra" / ".submitit"
    assert len([*place.glob("*/*_submitted.pkl")]) == 2
    (script,) = place.glob("*/*_submission.sh")
    assert "#SBATCH --array=0-1%1\n" in script.read_text()


def test_the_command_that_asks_how_far_a_sweep_is_can_be_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("scripts.sweep.__main__.run_on_slurm", lambda *_: None)
    (settings,) = main.compose(["launcher=slurm", "sweep.wait=false"])
    plan = Plan(tmp_path / "my sweep", expand(["seed=1"]), [0.0], 5, 1)
    assert main.run(plan, settings) == 0
    (passed,) = [w for w in shlex.split(capsys.readouterr().out) if w.startswith("ARGS=")]
    assert shlex.split(passed.removeprefix("ARGS=")) == [f"sweep={plan.folder}"]  # by make's shell
