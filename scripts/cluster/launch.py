"""A command on several processes, under torchrun, that ends as one command does.

python -m scripts.cluster.launch --processes=2 scripts.train key=value…

One sentence for a mistake (exit code 2), one for a crash (1), and 75 for a stop on request.
"""

import argparse
import contextlib
import importlib
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from mcan.runtime.stop_request import PREEMPTED
from scripts import collect_garbage
from scripts.cli.command import CRASHED, Command, fail
from scripts.cli.composition import is_multirun
from scripts.cli.flags import list_flags, starts_nothing
from scripts.cli.overrides import list_combinations
from scripts.cluster.child_process import forward_signals
from scripts.cluster.exit_status import FILE, note_request, read_exit_status
from scripts.cluster.parent import VARIABLE, name_parent, stop_with_parent
from scripts.cluster.slurm import REQUEUE_ON, requeue

SECONDS_TO_END = 30  # of the others when one process has crashed; then they are killed


class Arguments(argparse.ArgumentParser):
    """Arguments whose mistakes end the command in one sentence."""

    def error(self, message: str) -> NoReturn:
        fail(ValueError(message))


def main() -> None:
    """Start the processes, and end with one sentence and their exit code."""
    collect_garbage()
    stop_with_parent()
    options = parse(sys.argv[1:])
    command: Command[Any] = importlib.import_module(options.module).main
    try:
        arguments = command.parse(options.words)
        if starts_nothing(arguments):
            sys.argv = [options.module, *options.words]
            command()
            return
        jobs = command.compose([*list_flags(arguments), *arguments.overrides])
    except ValueError as error:
        fail(error)
    combinations = [arguments.overrides]
    if is_multirun(arguments):  # here: processes of one job cannot become those of the next
        combinations = list_combinations(arguments.overrides)
        arguments.multirun = False
    flags = list_flags(arguments)
    for overrides, settings in zip(combinations, jobs, strict=True):
        launch(options, [*flags, *overrides], settings.runtime.max_restarts)


def launch(options: argparse.Namespace, words: list[str], max_restarts: int) -> None:
    """Run the processes of one job; unless all is well, this process ends as they did."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(name_parent({FILE: str(Path(folder, "exit_status"))}))
        with forward_signals(signal_children) as received:
            code, sentence = run(options, words, max_restarts)
        del os.environ[FILE], os.environ[VARIABLE]
    if sentence:
        print(sentence, file=sys.stderr)
    if code == PREEMPTED and options.requeue and REQUEUE_ON in received:
        requeue()
    if code:
        sys.exit(code)


def launch_arguments(num_processes: int, module: str, *words: str) -> list[str]:
    """The arguments of Python for a command on this machine, with `num_processes`."""
    launcher = ["scripts.cluster.launch", f"--processes={num_processes}"]
    return ["-m", *(launcher if num_processes > 1 else []), module, *words]


def parse(words: list[str]) -> argparse.Namespace:
    """How many processes on how many nodes, and the command."""
    parser = Arguments("scripts.cluster.launch", allow_abbrev=False)
    parser.add_argument("--processes", type=int, default=1, help="on each node")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--node", type=int, default=0, help="the number of this node")
    parser.add_argument("--address", help="of this node, under which the others reach it")
    parser.add_argument("--endpoint", help="host:port of node 0, where several nodes meet")
    parser.add_argument("--id", default="none", help="the same on all nodes that belong together")
    parser.add_argument("--requeue", action="store_true", help="in a Slurm job: after a stop")
    parser.add_argument("module")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    if options.processes < 1:
        parser.error(f"GPUS is {options.processes}, expected at least 1")
    return options


def run(options: argparse.Namespace, words: list[str], max_restarts: int) -> tuple[int, str]:
    """Run all processes to their end; an exit code, and a sentence unless one was printed."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous import RendezvousError
    from torch.distributed.run import parse_args
    from torch.distributed.run import run as run_torchrun

    logging.disable(logging.ERROR)  # torchrun's own messages say less, on many lines
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun itself does
    # processes that start again must not read the addresses of those before (pytorch #135712)
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    try:
        run_torchrun(parse_args(torchrun_words(options, words, max_restarts)))
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        return read_exit_status() or (CRASHED, describe_crash(rank, failure.exitcode))
    except RendezvousError as error:
        return CRASHED, f"error: the nodes did not meet at {options.endpoint} ({error})"
    return 0, ""


def torchrun_words(options: argparse.Namespace, words: list[str], max_restarts: int) -> list[str]:
    """The same as arguments of torchrun."""
    # without an address, torchrun gives the others socket.getfqdn(), which need not resolve
    meeting, address = ["--standalone"], "127.0.0.1"
    if options.nodes > 1:
        address = options.address
        meeting = [
            "--rdzv-backend=c10d", f"--rdzv-endpoint={options.endpoint}", f"--rdzv-id={options.id}",
            f"--nnodes={options.nodes}", f"--rdzv-conf=is_host={str(options.node == 0).lower()}",
        ]  # fmt: skip
    return [
        *meeting,
        *([f"--local-addr={address}"] if address else []),
        f"--nproc-per-node={options.processes}",
        f"--max-restarts={max_restarts}",
        f"--shutdown-timeout={SECONDS_TO_END}",
        "--signals-to-handle=SIGQUIT",  # all others are passed on, and get the time they need
        "-m",
        options.module,
        *words,
    ]


def describe_crash(rank: int, code: int) -> str:
    """What ended a process that left no exit status."""
    how = f"ended with exit code {code}"
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    return f"error: process {rank} {how}; resume=true continues from the last checkpoint, if any"


def signal_children(number: int) -> None:
    """Let the processes know of a request to stop: they save, and have the time they need."""
    note_request()  # for a process that has not begun to listen, and ends by the signal
    started = find_children()
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)
    if not started:
        sys.exit(PREEMPTED)


def find_children() -> list[int]:
    """The processes that this one has started and that are still there."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(number) for file in lists for number in file.read_text().split()]


if __name__ == "__main__":
    main()
