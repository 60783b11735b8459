"""On a real Slurm: sweeps and training runs give the same results as local ones."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.cluster import BINDS, Cluster, list_processes, private_cluster
from tests.small_runs import assert_same, end_state, finish, settings, start, train_here

pytestmark = [pytest.mark.slurm, pytest.mark.filterwarnings("ignore:a constant image")]

SITE = ["launcher=slurm", "launcher.gres=null", "launcher.cpus=1", "launcher.minutes=10"]
AT_EVERY_STEP = "runtime.checkpoint_every_minutes=0"
LAMS = "attention.lam=0,1"


@pytest.fixture(scope="module")
def cluster():
    with private_cluster() as cluster:
        yield cluster
    assert list_processes(cluster) == []


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def words(small_dataset, runs):
    return settings(small_dataset, runs)


def command(cluster: Cluster, module: str, *words: str) -> subprocess.Popen[str]:
    """Start a command of this project on the submitting machine."""
    return start([*words], 1, f"scripts.{module}", cluster.environment)


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    return finish(process)


def wait_for_step(
    cluster: Cluster, folder: Path, process: subprocess.Popen[str] | None = None
) -> None:
    """Wait until a run has trained a few steps; its command must not end before."""

    def is_there() -> bool:
        assert process is None or process.poll() is None, process.communicate()[0]
        return any(int(path.stem[5:]) >= 3 for path in folder.glob("step_*.pt"))

    cluster.wait_until(is_there, 200, f"a checkpoint in {folder}")


def count_cpus(cluster: Cluster) -> set[int]:
    """How many CPUs the processes that train may use."""
    found = set()
    for number in list_processes(cluster):
        with contextlib.suppress(OSError):  # it has ended
            program, *words = Path(f"/proc/{number}/cmdline").read_text().split("\0")
            if program == sys.executable and "scripts.train" in words:
                found.add(len(os.sched_getaffinity(number)))
    return found


def slurm_job(sweep: Path, job: str) -> str:
    return json.loads((sweep / "jobs" / f"{job}.json").read_text())["slurm_job"]


def submitted(printed: str) -> str:
    assert printed.startswith("job "), printed
    return printed.split()[1]


def log_of(runs: Path, name: str, job: str) -> str:
    return (runs / "slurm" / f"{name}-{job}.log").read_text()


def test_a_sweep_with_a_requeued_job_equals_local_runs(cluster, words, runs):
    sweep = runs / "four"
    own = [*SITE, "sweep.name=four", "sweep.poll_seconds=0.2", "sweep.folds=3", LAMS]
    lists = ["attention.k_max=2,3", "seed=1,2"]
    process = command(cluster, "sweep", *words, *lists, *own, AT_EVERY_STEP)
    last = "k_max_3-seed_2"  # whose SLURM_JOB_ID is that of the whole array
    wait_for_step(cluster, sweep / last, process)
    number = slurm_job(sweep, last)
    cluster.ask("scancel", "--signal=USR1", number)
    cluster.release(number)
    code, printed = end(process)
    assert code == 0, printed
    assert "4 of 4 runs are done" in printed
    array = number.split("_")[0]
    assert [cluster.field(f"{array}_{task}", "Restarts") for task in range(4)] == list("0001")
    for k_max in (2, 3):
        for seed in (1, 2):
            local = f"local-{k_max}-{seed}"
            train_here([*words, f"attention.k_max={k_max}", f"seed={seed}", f"name={local}"])
            on_slurm = end_state(sweep / f"k_max_{k_max}-seed_{seed}")
            assert_same(on_slurm, end_state(runs / local))
    lines = (sweep / "results.csv").read_text().splitlines()
    assert len(lines) == 1 + 4 * 2
    code, printed = end(command(cluster, "sweep", *words, *lists, *own))
    assert (code, "4 runs, 4 of them there already" in printed) == (0, True), printed


@pytest.fixture(scope="module")
def reference(words, runs):
    """Two processes on one node, without Slurm."""
    code, printed = finish(start([*words, "name=reference"], num_processes=2))
    assert code == 0, printed
    return end_state(runs / "reference")


def test_a_requeued_run_on_two_nodes_equals_two_local_processes(cluster, words, runs, reference):
    """They meet although socket.getfqdn() is of no use."""
    process = command(
        cluster, "cluster.submit", *words, *SITE, "launcher.nodes=2", "name=nodes", AT_EVERY_STEP
    )
    code, printed = end(process)
    assert code == 0, printed
    number = submitted(printed)
    wait_for_step(cluster, runs / "nodes")
    cluster.ask("scancel", "--signal=USR1", number)
    cluster.release(number)
    ended = ("COMPLETED", "FAILED")
    cluster.wait_until(lambda: cluster.field(number, "JobState") in ended, 200, "its end")
    log = log_of(runs, "nodes", number)
    assert cluster.field(number, "JobState") == "COMPLETED", log
    assert cluster.field(number, "NodeList") == "n[1-2]"
    assert cluster.field(number, "Restarts") == "1"
    assert log.count("stopped on request") == 1
    assert log.count("started again: resumes from the last checkpoint") == 1
    assert_same(end_state(runs / "nodes"), reference)


@pytest.mark.skipif(not BINDS, reason="this machine's CPUs 0 and 1 are not ours to bind to")
def test_the_processes_of_a_job_may_use_the_cpus_that_it_asked_for(cluster, words, runs):
    assert cluster.ask("srun", "--cpus-per-task=1", "nproc") == "1"  # the cluster does bind
    own = [*words, *SITE, "launcher.cpus=2", "optim.epochs=40", AT_EVERY_STEP]
    code, printed = end(command(cluster, "cluster.submit", *own, "name=cpus"))
    assert code == 0, printed
    wait_for_step(cluster, runs / "cpus")
    assert count_cpus(cluster) == {2}
    cluster.ask("scancel", submitted(printed))
    process = command(cluster, "sweep", *own, "sweep.name=cpus_sweep", "seed=1,2")
    wait_for_step(cluster, runs / "cpus_sweep" / "seed_1", process)
    assert count_cpus(cluster) == {2}
    process.send_signal(signal.SIGINT)
    assert end(process)[0] == 130
    cluster.ask("scancel", "--name=sweep-cpus_sweep")
    cluster.wait_until(lambda: not cluster.ask("squeue", "-h"), 60, "an empty queue")


def test_failed_and_cancelled_jobs_are_named_and_do_not_stop_the_others(cluster, words, runs):
    sweep = runs / "bad"
    own = [*SITE, "sweep.name=bad", "sweep.poll_seconds=0.2", "sweep.folds=3", LAMS]
    lists = ["optim.rate.peak=1e-3,1e30,2e-3", "optim.epochs=40"]
    process = command(cluster, "sweep", *words, *lists, *own, AT_EVERY_STEP)
    wait_for_step(cluster, sweep / "peak_0.002", process)
    wait_for_step(cluster, sweep / "peak_0.001", process)
    again = command(cluster, "sweep", *words, *lists, *own)
    code, printed = end(again)
    assert code == 2, printed
    assert "is being swept by another process" in printed
    for name in ("peak_0.001", "peak_0.002"):
        cluster.ask("scancel", slurm_job(sweep, name))
    code, printed = end(process)
    assert code == 1, printed
    assert "0 of 3 runs are done" in printed
    assert "failed: peak_1e+30: error: loss or gradient of step" in printed
    assert "interrupted: peak_0.001: resumes when the sweep is started again" in printed
    assert cluster.ask("squeue", "-h") == ""


def test_jobs_continue_without_the_command_and_are_not_submitted_twice(cluster, words, runs):
    sweep = runs / "left"
    own = [*SITE, "sweep.name=left", "sweep.poll_seconds=0.2", "optim.epochs=40", "seed=1,2"]
    process = command(cluster, "sweep", *words, *own, AT_EVERY_STEP)
    for name in ("seed_1", "seed_2"):
        wait_for_step(cluster, sweep / name, process)
    process.send_signal(signal.SIGINT)
    code, printed = end(process)
    assert code == 130, printed
    assert len(cluster.ask("squeue", "-h", "--array").splitlines()) == 2
    code, printed = end(command(cluster, "sweep", *words, *own))
    assert code == 2, printed
    assert "named sweep-left wait or run already: let them end, or scancel them" in printed
    _, printed = end(command(cluster, "sweep_report", f"sweep={sweep}"))
    assert "running: seed_1: on " in printed
    cluster.ask("scancel", "--name=sweep-left")
    cluster.wait_until(lambda: not cluster.ask("squeue", "-h"), 60, "an empty queue")
    _, printed = end(command(cluster, "sweep_report", f"sweep={sweep}"))
    assert "interrupted: seed_1: resumes when the sweep is started again" in printed


def test_an_error_of_sbatch_is_reported_in_one_sentence(cluster, words, runs):
    wrong = [*words, *SITE, "launcher.partition=nowhere", "name=refused"]
    code, printed = end(command(cluster, "cluster.submit", *wrong))
    assert code == 2
    (line,) = printed.splitlines()
    assert "nothing was submitted: sbatch: error: " in line
    assert "partition" in line
    code, printed = end(command(cluster, "sweep", *wrong[:-1], "sweep.name=refused", "seed=1,2"))
    assert code == 2
    assert "error: nothing was submitted: sbatch: error: " in printed
