"""The training runs that a report needs: which they are, and how the missing ones are trained."""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attention.heads.registry import name_variant
from configs.schema.training import Family, Train
from mcan.training.preparation import check_word_vectors
from mcan.training.same_settings import list_values
from scripts.cli.command import read_words
from scripts.cli.composition import Configuration
from scripts.cluster.parent import name_parent
from scripts.cluster.planned_run import PlannedRun
from scripts.cluster.shares import list_gpus, share_environment, share_gpus

HEADS = ("discrete", "unimodal", "multimodal")
FINE_TUNED = "discrete → multimodal"
PRESETS = {  # of datasets that are not trained with the defaults
    "vqa_v2": "experiment=paper_{head}",
    "custom": "experiment=photos",
}
SPARSE = (  # heads with sparse weights or densities of bounded support
    ("discrete", {"normaliser": "entmax15"}),
    ("discrete", {"normaliser": "sparsemax"}),
    ("unimodal", {"density": "paraboloid"}),
    ("multimodal", {"density": "paraboloid"}),
    ("multimodal", {"normaliser": "entmax15"}),
    ("multimodal", {"normaliser": "sparsemax"}),
)
TRAIN = Configuration("train", Train)
POLL = 0.1  # seconds between looks at the runs that train


@dataclass(frozen=True)
class Run(PlannedRun):
    """A run of the report: a head, a variant of it, or fine-tuning, with one seed."""

    kind: str
    seed: int

    def settings(self) -> Train:
        """The settings to start it with; wrong ones raise."""
        (settings,) = TRAIN.compose(read_words(self.overrides))
        return settings

    def check(self) -> None:
        """Raise for wrong settings, and for others than those of a run that is there already.

        For a run that is to be started, raise where its word vectors are missing.
        """
        settings = self.settings()
        if not self.folder.is_dir():
            check_word_vectors(settings.word_vectors)
        elif (self.folder / "config.yaml").is_file():
            self.check_same(settings)

    def check_same(self, settings: Train) -> None:
        """Raise where the run that is there was started with other settings."""
        before = self.config()
        roots = (str(Path(root).resolve()) for root in (before["data"]["root"], settings.data.root))
        for key, old, new in [("data.root", *roots), *list_values(settings.composed, before)]:
            if old != new:
                raise ValueError(
                    f"{self.folder} was trained with {key}={old}, not {new}; give the same "
                    "settings, or choose another folder for the report with runs=…"
                )


def plan_runs(
    data: str,
    seeds: Sequence[int],
    runs: Path,
    shared: Sequence[str],
    fine_tuning_epochs: int,
    family: Family = "paper",
    heads: Sequence[str] = HEADS,
) -> list[Run]:
    """These heads with every seed, fine-tuning, and the variants of a sparse family.

    Fine-tuning makes the discrete model of each seed multimodal.
    """
    planned = []
    for seed in seeds:
        kinds: dict[str, tuple[str, list[str]]] = {head: (head, []) for head in heads}
        if {"discrete", "multimodal"} <= {*heads}:
            start = runs / f"discrete-seed{seed}" / "best.pt"
            overrides = [f"init_from={start}", f"optim.epochs={fine_tuning_epochs}"]
            kinds[FINE_TUNED] = ("multimodal", overrides)
        for head, options in SPARSE if family == "sparse" else ():
            if head in heads:
                overrides = [f"attention.{option}={value}" for option, value in options.items()]
                kinds[name_variant(head, **options)] = (head, overrides)
        for kind, (head, own) in kinds.items():
            name = "fine-tuned" if kind == FINE_TUNED else kind.replace(", ", "-")
            name = f"{name}-seed{seed}"
            overrides = [*choose_settings(data, head, shared), *own]
            overrides += [f"seed={seed}", f"runs={runs}", f"name={name}"]
            planned.append(Run(runs / name, tuple(overrides), kind, seed))
    return planned


def choose_settings(data: str, head: str, shared: Sequence[str]) -> list[str]:
    """The overrides that start a head on a dataset; those that all runs share win over its preset.

    The last override of a key counts. A head of the user's own needs no file of its options.
    """
    preset = PRESETS.get(data, "").format(head=head if head in HEADS else "discrete")
    chosen = [f"attention={head}"]
    if head not in TRAIN.list_choices("attention", read_words(shared)):
        chosen = ["attention=own", f"attention.name={head}"]
    return ["figures=0", *filter(None, [preset]), *shared, f"data={data}", *chosen]


def train_runs(runs: Sequence[Run], num_processes: int, parallel: int = 1) -> None:
    """Train what is not finished, `parallel` runs at a time; what was begun is resumed.

    Where one fails, the others are asked to stop: they write a checkpoint and can be resumed too.
    """
    if parallel > 1 and num_processes > 1:
        raise ValueError(
            f"parallel is {parallel} and gpus is {num_processes}: all runs would share those GPUs; "
            "set one of them to 1"
        )
    for run in runs:
        if run.is_finished():
            print(f"{run.folder.name}: there already", flush=True)
    missing = [run for run in runs if not run.is_finished()]
    train_together([run for run in missing if run.kind != FINE_TUNED], num_processes, parallel)
    # fine-tuning begins with the weights of a finished discrete model
    train_together([run for run in missing if run.kind == FINE_TUNED], num_processes, parallel)


def train_together(runs: Sequence[Run], num_processes: int, parallel: int) -> None:
    """Train runs that do not need each other, `parallel` at a time, in their order."""
    waiting, free = deque(runs), deque(share_gpus(parallel, list_gpus(), num_processes))
    training: dict[Run, tuple[subprocess.Popen[bytes], list[str]]] = {}
    try:
        while waiting or training:
            # a run that has its folder has prepared the data, which two cannot do at once
            prepared = all(run.folder.is_dir() for run in training)
            if waiting and free and prepared:
                run, share = waiting.popleft(), free.popleft()
                command = [sys.executable, *run.start_arguments(num_processes)]
                environment = share_environment(share, parallel) if parallel > 1 else os.environ
                training[run] = subprocess.Popen(command, env=name_parent(environment)), share
            time.sleep(POLL)
            for run, (process, share) in [*training.items()]:
                if process.poll() is not None:
                    del training[run]
                    free.append(share)
                    check_ended(run.folder.name, process.returncode)
    finally:
        for process, _ in training.values():
            process.terminate()
        for process, _ in training.values():
            process.wait()


def call(arguments: Sequence[str], what: str) -> None:
    """Run a command of this project to its end; it prints itself what went wrong."""
    command = [sys.executable, *arguments]
    check_ended(what, subprocess.run(command, env=name_parent(), check=False).returncode)


def check_ended(what: str, code: int) -> None:
    """Raise where a command did not end well."""
    if code:
        raise ValueError(f"{what} ended with exit code {code}; the same command resumes it")
