"""make train LAUNCHER=slurm: hand a training on one or several nodes to Slurm.

python -m scripts.submit launcher=slurm launcher.nodes=2 launcher.gpus=4 key=value…

A batch script of its own rather than submitit: torchrun wants one task a node and a place to meet.
"""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from data.files import replacing
from scripts.entry import command
from scripts.overrides import quote_value
from scripts.slurm_options import list_options
from scripts.sweep.plan import split_words
from scripts.train import choose_folder, prepare_data

SCRIPT = """\
#!/bin/bash
{options}
{setup}
# where torchrun's processes meet: the first node, at a port that other jobs hardly have
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(scontrol show node "$first" | grep -o 'NodeAddr=[^ ]*' | cut -d = -f 2)
export ENDPOINT="$address:$((20000 + (SLURM_JOB_ID + ${{SLURM_RESTART_COUNT:-0}}) % 20000))"

# one launcher on every node; asked to stop, all processes save, and the job is queued again
exec srun --kill-on-bad-exit=1 --export=ALL bash -c 'exec "$0" -m scripts.launch \\
  --nodes="$SLURM_NNODES" --node="$SLURM_NODEID" --endpoint="$ENDPOINT" --id="$SLURM_JOB_ID" \\
  --requeue "$@"' {command}
"""


@command("submit")
def main(config: DictConfig) -> None:
    """Write the batch script, submit it, and say where its words go."""
    if config.launcher.name != "slurm":
        raise ValueError(f"submit needs a launcher of Slurm, not {config.launcher.name}")
    if shutil.which("sbatch") is None:
        raise ValueError("LAUNCHER=slurm needs a machine that has sbatch")
    folder = choose_folder(config)
    if folder.exists() and not config.resume:
        raise ValueError(
            f"{folder} exists already: go on with it by resume=true, or choose another name=…"
        )
    prepare_data(config)
    words, _ = split_words(list(map(quote_value, sys.argv[1:])))
    place = folder.parent / "slurm"
    with replacing(place / f"{folder.name}.sh") as temporary:
        temporary.write_text(write_script(config.launcher, words, place, folder.name))
    number = submit(place / f"{folder.name}.sh")
    print(f"job {number} is submitted; it trains in {folder}")
    print(f"its words go to {place / f'{folder.name}-{number}.log'}; squeue --job={number} asks")


def write_script(launcher: DictConfig, words: list[str], place: Path, name: str) -> str:
    """The batch script of a training."""
    options: dict[str, Any] = {
        "job-name": name,
        "output": place.resolve() / f"{name}-%j.log",
        **list_options(launcher),
    }
    return SCRIPT.format(
        options="\n".join(format_option(*option) for option in options.items()),
        setup="\n".join(launcher.setup),
        command=shlex.join(
            [sys.executable, f"--processes={launcher.gpus}", "scripts.train", *words]
        ),
    )


def format_option(name: str, value: Any) -> str:
    """An option as a line of a batch script."""
    if value is True:
        return f"#SBATCH --{name}"
    return f"#SBATCH --{name}={shlex.quote(str(value))}"


def submit(script: Path) -> str:
    """Hand the script to Slurm; the number of the job."""
    done = subprocess.run(
        ["sbatch", "--parsable", str(script)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(f"nothing was submitted: {' '.join(done.stderr.split())}")
    return done.stdout.strip().split(";")[0]


if __name__ == "__main__":
    main()
