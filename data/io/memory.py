"""How much memory this process may use: what the machine has, or less in a job or a container."""

import os
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")  # lines number:controllers:path


def usable_memory(own_cgroups: Path = OWN_CGROUPS, mounted: Path = CGROUPS) -> int:
    """Bytes: the least of physical memory and all limits; a cgroup's page cache counts too."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([physical, *cgroup_limits(own_cgroups, mounted)])


def cgroup_limits(own_cgroups: Path, mounted: Path) -> Iterator[int]:
    """The memory limits of the process's cgroups and of all above them, versions 1 and 2."""
    try:
        lines = own_cgroups.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            roots, name = [mounted / "memory"], "memory.limit_in_bytes"
        elif not controllers:
            roots, name = [mounted, mounted / "unified"], "memory.max"
        else:
            continue
        for root in roots:
            # in a container the path may be the host's, of which only the root is to be seen
            own = root / os.path.normpath(f"/{path}").lstrip("/")
            for folder in (own, *own.parents):
                if folder.is_relative_to(root):
                    yield from read_limit(folder / name)


def read_limit(file: Path) -> Iterator[int]:
    """The number in a file; nothing where it is `max` or not there."""
    try:
        text = file.read_text().strip()
    except OSError:
        return
    if text.isdecimal():
        yield int(text)
