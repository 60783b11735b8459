"""The folder of one run: its configuration, metrics and checkpoints, and a lock on all of it."""

import contextlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from data.io.atomic_files import atomic_write
from data.io.locks import FileLock
from mcan.checkpoint import (
    DamagedCheckpointError,
    link_checkpoint,
    load_checkpoint,
    save_checkpoint,
)


class RunFolder:
    """`runs/<name>/`, owned by one process at a time."""

    def __init__(self, path: Path, resume: bool) -> None:
        self.path, self.is_new = path, not resume
        if self.is_new:
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                raise ValueError(
                    f"{path} exists already: continue it with resume=true, or choose another name=…"
                ) from None
        elif not path.is_dir():
            raise ValueError(f"there is no run to resume in {path}")
        self._lock = FileLock(path / ".lock", f"another process is training in {path}")
        for left in [*path.glob(".*.partial"), *path.glob(".*.link")]:  # by a run that was killed
            left.unlink()

    def write_text(self, name: str, text: str) -> None:
        """Write a small file, whole or not at all."""
        with atomic_write(self.path / name) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def keep_metrics(self, lines: list[dict[str, Any]]) -> None:
        """Replace all lines: an epoch that is trained again leaves one line, not two."""
        self.write_text("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    def save(self, step: int, content: dict[str, Any], keep: int, is_best: bool = False) -> None:
        """Write a checkpoint, name it last.pt (and best.pt), and drop all but the newest `keep`."""
        last = self.path / "last.pt"
        save_checkpoint(last, content)
        if is_best:
            link_checkpoint(last, self.path / "best.pt")
        # The numbered name comes last: a run resumes from it, and then the others must be there.
        link_checkpoint(last, self.path / f"step_{step:08d}.pt")
        for old in self.checkpoints()[: -max(1, keep)]:
            old.unlink()

    def checkpoints(self) -> list[Path]:
        """All numbered checkpoints, oldest first."""
        return sorted(self.path.glob("step_*.pt"))

    def latest(self) -> dict[str, Any] | None:
        """The newest valid checkpoint; None where none was written yet.

        One that is valid but of a newer format raises: to go back would lose what it holds.
        """
        problems: dict[Path, str] = {}
        for path in reversed(self.checkpoints()):
            try:
                content = load_checkpoint(path)
            except DamagedCheckpointError as error:
                problems[path] = str(error)
                continue
            check_resumable(path, content)
            for damaged, problem in problems.items():
                print(f"WARNING: {problem}; resuming from {path.name} instead", flush=True)
                # else it would count as the newest, and valid ones would be deleted in its place
                damaged.rename(damaged.with_name(f"damaged_{damaged.name}"))
            return content
        if problems:
            raise ValueError(next(iter(problems.values())))
        for path in (self.path / "last.pt", self.path / "best.pt"):
            # a run that was killed while it wrote its first checkpoint may have left one: it starts
            # again and replaces it, but never a model of another origin
            with contextlib.suppress(DamagedCheckpointError, FileNotFoundError):
                check_resumable(path, load_checkpoint(path))
        return None

    def discard(self) -> None:
        """Close the folder of a run that could not begin, and remove it if it was made for it."""
        if self.is_new:
            (self.path / "config.yaml").unlink(missing_ok=True)
            (self.path / ".lock").unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it is not empty
                self.path.rmdir()
        self.close()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def check_resumable(path: Path, content: Mapping[str, Any]) -> None:
    """Raise for a released or imported model: it has no state of a run."""
    if "model" in content and "optimizer" not in content:
        raise ValueError(
            f"{path} is a model without the state of a run, as make release writes it: it cannot "
            f"be resumed; start a new run from it with init_from={path}"
        )


def open_run_folder(path: Path, resume: bool, config: str) -> RunFolder:
    """The folder of a run, with its config in it."""
    folder = RunFolder(path, resume)
    if not (path / "config.yaml").is_file():
        try:
            folder.write_text("config.yaml", config)
        except OSError:
            folder.discard()
            raise
    return folder


def remove_debug_run(path: Path) -> None:
    """Remove the folder of an earlier run of debug=quick; any other is left alone and named."""
    if not path.is_dir():
        return
    config = path / "config.yaml"
    if config.is_file():
        is_debug = "is_debug: true" in config.read_text(encoding="utf-8").splitlines()
    else:  # killed before it was written
        is_debug = not any(path.glob("*.pt"))
    if not is_debug:
        raise ValueError(f"{path} is not of debug=quick and stays; choose another name=…")
    with RunFolder(path, resume=True):
        shutil.rmtree(path)
