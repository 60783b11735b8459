"""A private Slurm cluster in a temporary folder: two nodes on this machine, on free ports."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.mcan.runtime.together import free_port

DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIG = """\
ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin={task_plugin}
TaskPluginParam=autobind=cores
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=10
SlurmdParameters=config_overrides
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname={host} Port={first_port} CPUs=2 State=UNKNOWN
NodeName=n2 NodeAddr=127.0.0.2 NodeHostname={host} Port={second_port} CPUs=2 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


# Slurm binds to CPUs 0 and 1, which a container may not have.
BINDS = hasattr(os, "sched_getaffinity") and {0, 1} <= os.sched_getaffinity(0)
# A node's own name says nothing to the other nodes, as on clusters without a name server.
NAMELESS = 'import socket\nsocket.getfqdn = lambda *name: "nowhere.invalid"\n'


class Cluster:
    """Runs Slurm commands on the cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder)}

    def ask(self, *words: str) -> str:
        """Run a Slurm command; its output."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def field(self, job: str, name: str) -> str:
        """A field of `scontrol show job`, such as JobState."""
        shown = self.ask("scontrol", "--oneliner", "show", "job", job)
        return next(word.split("=", 1)[1] for word in shown.split() if word.startswith(f"{name}="))

    def wait_until(self, is_true: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > deadline:
                raise AssertionError(f"timeout while waiting for {what}\n{self.describe()}")
            time.sleep(0.02)

    def describe(self) -> str:
        """The state of the nodes and jobs."""
        return self.ask("sinfo", "-N", "-l") + "\n" + self.ask("squeue", "-a")

    def release(self, job: str) -> None:
        """Start a requeued job now instead of after its delay."""
        self.wait_until(
            lambda: self.field(job, "JobState") == "PENDING", 120, f"job {job} back in the queue"
        )
        time.sleep(3)  # if released immediately, Slurm never starts it again
        self.ask("scontrol", "update", f"JobId={job}", "StartTime=now")


@contextlib.contextmanager
def private_cluster() -> Iterator[Cluster]:
    """Start munged, slurmctld and two slurmd; stop them and all jobs at the end."""
    missing = [name for name in DAEMONS if shutil.which(name) is None]
    if missing or os.getuid() != 0:
        raise RuntimeError(f"test-slurm needs root and {', '.join(DAEMONS)}: apt-get install "
                           "slurm-wlm munge")  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))  # a socket's path must be short
    folder.chmod(0o755)
    cluster = Cluster(folder)
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        start(cluster, daemons)
        yield cluster
    finally:
        stop(cluster, daemons)
        shutil.rmtree(folder)


def start(cluster: Cluster, daemons: list[subprocess.Popen[bytes]]) -> None:
    """Start the daemons in the foreground, as children of this process."""
    folder = cluster.folder
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    (folder / "state").mkdir()
    ports = {f"{name}_port": free_port() for name in ("controller", "first", "second")}
    config = folder / "slurm.conf"
    task_plugin = "task/affinity" if BINDS else "task/none"
    config.write_text(
        CONFIG.format(folder=folder, host=socket.gethostname(), task_plugin=task_plugin, **ports)
    )
    (folder / "sitecustomize.py").write_text(NAMELESS)
    places = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    munge = ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *places]
    daemons.append(spawn(cluster, munge))
    cluster.wait_until(Path(folder, "munge.socket").exists, 30, "munge's socket")
    daemons.append(spawn(cluster, ["slurmctld", "-D", "-f", str(config)]))
    daemons.append(spawn(cluster, ["slurmd", "-D", "-N", "n1", "-f", str(config)]))
    daemons.append(spawn(cluster, ["slurmd", "-D", "-N", "n2", "-f", str(config)]))

    def is_idle() -> bool:
        with contextlib.suppress(RuntimeError):
            return cluster.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle", "idle"]
        return False

    cluster.wait_until(is_idle, 60, "two idle nodes")


def spawn(cluster: Cluster, words: list[str]) -> subprocess.Popen[bytes]:
    """A daemon that ends when this process ends, for any reason."""
    die_with_parent = 1  # PR_SET_PDEATHSIG
    with open(cluster.folder / "daemons.log", "ab") as log:
        return subprocess.Popen(
            words,
            env=cluster.environment,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(die_with_parent, signal.SIGTERM),
        )


def stop(cluster: Cluster, daemons: list[subprocess.Popen[bytes]]) -> None:
    """End all jobs, then all daemons, then any remaining process of this cluster."""
    with contextlib.suppress(RuntimeError, AssertionError, subprocess.TimeoutExpired):
        cluster.ask("scancel", "--user=root")
        cluster.wait_until(lambda: not cluster.ask("squeue", "-h"), 30, "an empty queue")
    for daemon in reversed(daemons):
        daemon.terminate()
    for daemon in daemons:
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(timeout=15)
        daemon.kill()
        daemon.wait()
    for process in list_processes(cluster):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def list_processes(cluster: Cluster) -> list[int]:
    """Processes of this cluster, identified by its config in their environment."""
    mark = f"SLURM_CONF={cluster.folder / 'slurm.conf'}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
