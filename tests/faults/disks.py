"""A disk of one megabyte that is full or read-only, visible to one command only."""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.faults.runs import Run

SIZE = 1 << 20
# Fill the disk up to $FREE bytes, run the command, and copy out what it left there.
SCRIPT = """
mount -t tmpfs -o size=1m none "$DISK" && cp -a "$BEFORE/." "$DISK" || exit 99
if [ "$FREE" ]; then
    space=$(df --block-size=1 --output=avail "$DISK" | tail -1)
    head -c $((space - FREE)) /dev/zero > "$DISK/ballast" || exit 99
fi
if [ "$READ_ONLY" ]; then mount -o remount,ro "$DISK" || exit 99; fi
"$@"
code=$?
cp -a "$DISK/." "$AFTER"
rm -f "$AFTER/ballast"
exit $code
"""


@cache
def can_mount() -> bool:
    """Whether this machine allows a private mount namespace."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@dataclass(frozen=True)
class Disk:
    """`path` is where the command sees the disk, `after` where its files are once it has ended."""

    path: Path
    after: Path

    def run(
        self,
        command: Sequence[str],
        before: Path | None = None,
        free: int | None = None,
        read_only: bool = False,
        **variables: str,
    ) -> tuple[int, str]:
        """Run a command on a disk that holds a copy of `before`; its exit code and output.

        Without the right to mount, a limit on the file size simulates a full disk, and a folder
        without write permission, which does not stop root, a read-only one.
        """
        shutil.rmtree(self.after, ignore_errors=True)
        with tempfile.TemporaryDirectory() as empty:
            if can_mount():
                self.after.mkdir()
                places = {"DISK": self.path, "AFTER": self.after, "BEFORE": before or empty}
                variables |= {name: str(place) for name, place in places.items()}
                variables |= {"FREE": "" if free is None else str(free)}
                variables |= {"READ_ONLY": "yes" if read_only else ""}
                script = ["unshare", "-m", "sh", "-c", SCRIPT, "sh"]
                return Run([*script, *command], **variables).end()
            return self.run_limited(command, before or Path(empty), free, read_only, variables)

    def run_limited(
        self,
        command: Sequence[str],
        before: Path,
        free: int | None,
        read_only: bool,
        variables: dict[str, str],
    ) -> tuple[int, str]:
        """The same without a mount."""
        shutil.rmtree(self.path)
        shutil.copytree(before, self.path)
        if read_only:
            self.path.chmod(0o500)
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            if free is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (free, usual[1]))
            process = Run(command, **variables)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        ended = process.end()
        self.path.chmod(0o700)
        shutil.copytree(self.path, self.after)
        return ended


def can_forbid_writing() -> bool:
    """Whether a folder can be made read-only at all."""
    return can_mount() or os.geteuid() != 0
