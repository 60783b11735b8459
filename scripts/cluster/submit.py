"""make train LAUNCHER=slurm: hand a training run on one or several nodes to Slurm.

python -m scripts.cluster.submit launcher=slurm launcher.nodes=2 launcher.gpus=4 key=value…

A batch script of its own, not submitit: torchrun wants one task per node and an address to meet at.
"""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from configs.schema.groups import Launcher
from configs.schema.training import Submit
from data.io.atomic_files import atomic_write
from data.vqa.data_folder import DataFolder
from mcan.training.preparation import prepare_data
from scripts.cli.command import command
from scripts.cli.run_names import choose_folder
from scripts.cluster.slurm import SRUN_CPUS, ask, list_options
from scripts.sweep.command_line import split_overrides

SCRIPT = """\
#!/bin/bash
{options}
{setup}
# the address under which Slurm itself reaches a node: its own name may mean nothing to the others
export ADDRESS_OF='scontrol show node "$1" | grep -o "NodeAddr=[^ ]*" | cut -d = -f 2'

# where torchrun's processes meet: the first node, at a port that other jobs hardly have
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + (SLURM_JOB_ID + ${{SLURM_RESTART_COUNT:-0}}) % 20000))
export ENDPOINT="$(bash -c "$ADDRESS_OF" - "$first"):$port"

# one launcher on every node; asked to stop, all processes save, and the job is queued again
exec srun --kill-on-bad-exit=1 --export=ALL bash -c 'exec "$0" -m scripts.cluster.launch \\
  --nodes="$SLURM_NNODES" --node="$SLURM_NODEID" --endpoint="$ENDPOINT" --id="$SLURM_JOB_ID" \\
  --address="$(bash -c "$ADDRESS_OF" - "$SLURMD_NODENAME")" --requeue "$@"' {command}
"""


@command("submit")
def main(settings: Submit) -> None:
    """Write the batch script, submit it, and say where its output goes."""
    if settings.launcher.name != "slurm":
        raise ValueError(f"submit needs a launcher of Slurm, not {settings.launcher.name}")
    if shutil.which("sbatch") is None and not settings.launcher.dry_run:
        raise ValueError("LAUNCHER=slurm needs a machine that has sbatch")
    folder = choose_folder(settings)
    if folder.exists() and not (settings.resume or settings.is_debug):
        raise ValueError(
            f"{folder} exists already: continue it with resume=true, or choose another name=…"
        )
    overrides, _ = split_overrides(sys.argv[1:])
    place = folder.parent / "slurm"
    file = place / f"{folder.name}.sh"
    script = write_script(settings.launcher, overrides, place, folder.name)
    if settings.launcher.dry_run:
        print(f"# {file}\n{script}\n# the command\n{shlex.join(sbatch(file))}")
        return
    data = DataFolder(settings.data.root, settings.data.layout)
    prepare_data(settings, data, settings.resume)
    with atomic_write(file) as temporary:
        temporary.write_text(script)
    number = submit(file)
    print(f"job {number} is submitted; it trains in {folder}")
    print(f"its output goes to {place / f'{folder.name}-{number}.log'}; squeue --job={number} asks")


def write_script(launcher: Launcher, overrides: list[str], place: Path, name: str) -> str:
    """The batch script of a run."""
    options: dict[str, Any] = {
        "job-name": name,
        "output": place.resolve() / f"{name}-%j.log",
        **list_options(launcher),
    }
    return SCRIPT.format(
        options="\n".join(format_option(*option) for option in options.items()),
        setup="\n".join([SRUN_CPUS, *launcher.setup]),
        command=shlex.join(
            [sys.executable, f"--processes={launcher.gpus}", "scripts.train", *overrides]
        ),
    )


def format_option(name: str, value: Any) -> str:
    """An option as a line of a batch script."""
    if value is True:
        return f"#SBATCH --{name}"
    return f"#SBATCH --{name}={shlex.quote(str(value))}"


def sbatch(script: Path) -> list[str]:
    """The command that submits a script."""
    return ["sbatch", "--parsable", str(script)]


def submit(script: Path) -> str:
    """Hand the script to Slurm; the number of the job."""
    done = ask(*sbatch(script))
    if done.returncode:
        raise ValueError(f"nothing was submitted: {' '.join(done.stderr.split())}")
    return done.stdout.strip().split(";")[0]


if __name__ == "__main__":
    main()
