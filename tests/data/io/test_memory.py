"""Memory that may be used, read from made-up trees of cgroups."""

import os

import pytest

from data.io.memory import usable_memory

PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
UNLIMITED = 9223372036854771712  # what version 1 writes


@pytest.fixture
def usable(tmp_path):
    """Usable memory in a tree of {file: text} for a process with these lines."""

    def find(lines, files):
        own = tmp_path / "cgroup"
        own.write_text("\n".join(lines) + "\n")
        for name, text in files.items():
            file = tmp_path / "mounted" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
        return usable_memory(own, tmp_path / "mounted")

    return find


def test_version_2_the_least_limit_above_the_process_counts(usable):
    files = {
        "memory.max": "max",
        "slurm/memory.max": 7000,
        "slurm/job_1/memory.max": 5000,
        "slurm/job_1/step_0/memory.max": 6000,
        "slurm/job_1/step_0/below/memory.max": 10,
        "slurm/job_2/memory.max": 20,
    }
    assert usable(["0::/slurm/job_1/step_0"], files) == 5000


def test_version_1_has_a_tree_for_memory_alone(usable):
    files = {
        "memory/memory.limit_in_bytes": UNLIMITED,
        "memory/slurm/uid_1/memory.limit_in_bytes": 4000,
        "memory/slurm/uid_1/job_2/memory.limit_in_bytes": UNLIMITED,
        "cpu/slurm/uid_1/memory.limit_in_bytes": 10,
    }
    lines = ["7:cpu,cpuacct:/slurm/uid_1", "5:memory:/slurm/uid_1/job_2", "1:name=systemd:/x:y"]
    assert usable(lines, files) == 4000


def test_both_versions_side_by_side(usable):
    files = {"memory/a/memory.limit_in_bytes": 4000, "unified/b/memory.max": 3000}
    assert usable(["5:memory:/a", "0::/b"], files) == 3000


@pytest.mark.parametrize("path", ["/", "/docker/0123", "/../host.slice"])
def test_in_a_container_the_limit_may_be_the_roots_whatever_the_path(usable, path):
    assert usable([f"0::{path}"], {"memory.max": 3000}) == 3000
    assert usable([f"4:memory:{path}"], {"memory/memory.limit_in_bytes": 2000}) == 2000


def test_without_limits_it_is_what_the_machine_has(usable, tmp_path):
    assert usable(["0::/a"], {"a/memory.max": "max"}) == PHYSICAL
    assert usable(["4:memory:/b"], {"memory/b/memory.limit_in_bytes": UNLIMITED}) == PHYSICAL
    assert usable(["0::/not/there"], {}) == PHYSICAL
    assert usable_memory(tmp_path / "no file", tmp_path) == PHYSICAL


def test_of_this_process_it_is_more_than_nothing():
    assert 0 < usable_memory() <= PHYSICAL
