"""A disk that is full or read-only: one sentence, and existing files stay unchanged."""

import json
import re
import shutil
import sys

import pytest
import torch

from data.features.reader import FeatureStore
from data.vqa.data_folder import DataFolder
from tests.faults import moments
from tests.faults.disks import Disk, can_forbid_writing, can_mount
from tests.faults.runs import TRAPPED, Run, assert_matches_reference, errors_of
from tests.small_models import QUIET, listing
from tests.small_runs import AT_EVERY_STEP, assert_ends_like, train_command

FULL = f"cannot be written: {'No space left on device' if can_mount() else 'File too large'}"
READ_ONLY = "cannot be written: Read-only file system"
needs_mount = pytest.mark.skipif(not can_mount(), reason="needs a mount namespace")
needs_read_only = pytest.mark.skipif(not can_forbid_writing(), reason="root writes everywhere")


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk").mkdir()
    return Disk(tmp_path / "disk", tmp_path / "after")


@pytest.fixture
def begin(references, tmp_path):
    """A folder of runs with one run that has reached step 6."""

    def copy(num_processes):
        folder = tmp_path / "before" / "run"
        folder.mkdir(parents=True)
        for name in ("step_00000005.pt", "step_00000006.pt", "config.yaml", ".lock"):
            shutil.copy(references[num_processes] / name, folder)
        (folder / "last.pt").hardlink_to(folder / "step_00000006.pt")
        return folder.parent

    return copy


def succeed(command):
    code, printed = Run(command).end()
    assert code == 0, printed


def fail(disk, command, before=None, **state):
    """The only error of a command on a disk that holds a copy of `before`."""
    code, printed = disk.run(command, before, **state)
    assert code == 2, printed
    (error,) = errors_of(printed)
    return error


def assert_intact(after, before, reference):
    """All checkpoints are unchanged, nothing is half-written, and the newest one is valid."""
    found, kept = listing(after / "run"), listing(before / "run")
    assert not [name for name in found if name.endswith((".partial", ".link"))]
    for name in ("last.pt", *(name for name in kept if name.startswith("step_"))):
        assert found[name] == kept[name]
    assert_matches_reference(after / "run", reference)


@pytest.mark.parametrize(("num_processes", "free"), [(1, 0), (1, 100_000), (2, 100_000)])
def test_disk_full_while_a_checkpoint_is_written(
    words, begin, references, disk, num_processes, free
):
    """With no space at all TensorBoard's files fail first: a warning, and the run continues."""
    again = [*words, "name=run", "resume=true", AT_EVERY_STEP]
    command = train_command([*again, f"runs={disk.path}"], num_processes)
    before = begin(num_processes)
    code, printed = disk.run(command, before, free=free)
    assert code == 2, printed
    errors = errors_of(printed)  # the other of two processes may report that it lost this one
    assert errors[-1] == f"error: {disk.path}/run/last.pt {FULL}", printed
    assert len(errors) <= num_processes
    assert "the run continues without curves" in printed or free
    assert_intact(disk.after, before, references[num_processes])
    succeed(train_command([*again, f"runs={disk.after}"], num_processes))
    assert_ends_like(disk.after / "run", references[num_processes])


def test_disk_full_when_a_run_starts(words, disk):
    command = train_command([*words, "name=run", f"runs={disk.path}"])
    assert fail(disk, command, free=0) == f"error: {disk.path}/run/config.yaml {FULL}"
    assert not (disk.after / "run").exists()


@needs_mount
def test_disk_read_only_while_a_checkpoint_is_written(words, begin, references, disk):
    """The disk turns read-only in the midst of a run, as after an error of its own."""
    words = [*words, "name=run", "resume=true", AT_EVERY_STEP]
    command = train_command([*words, f"runs={disk.path}", TRAPPED])
    trap = {"place": moments.IN_STEP, "passage": 3, "action": "read-only"}
    trap["folder"] = str(disk.path / "run")
    trace = str(disk.path.with_name("trace"))
    error = fail(disk, command, begin(1), TRAP=json.dumps(trap), TRACE=trace)
    assert error == f"error: {disk.path}/run/last.pt {READ_ONLY}"
    assert assert_matches_reference(disk.after / "run", references[1]) == 8  # two steps were saved


@needs_read_only
def test_resuming_on_a_read_only_disk(words, begin, disk):
    command = train_command([*words, "name=run", "resume=true", f"runs={disk.path}"])
    before = begin(1)
    error = fail(disk, command, before, read_only=True)
    assert error == f"error: {disk.path}/run/.lock: Read-only file system"
    assert listing(disk.after) == listing(before)


@pytest.fixture(scope="session")
def answered(references, tmp_path_factory):
    """Earlier output of evaluate and export."""
    folder = tmp_path_factory.mktemp("answered")
    for name in ("evaluate", "export"):
        succeed(answer_command(name, references[1], folder))
    return folder


def answer_command(name, run, folder):
    words = [f"checkpoint={run}", f"output={folder / name}", *QUIET]
    return [sys.executable, "-m", f"scripts.{name}", *words]


@pytest.mark.parametrize(
    ("state", "reason"),
    [({"free": 0}, FULL), pytest.param({"read_only": True}, READ_ONLY, marks=needs_read_only)],
    ids=["full", "read-only"],
)
@pytest.mark.parametrize("name", ["evaluate", "export"])
def test_disk_full_or_read_only_while_results_are_written(
    references, answered, disk, name, state, reason
):
    error = fail(disk, answer_command(name, references[1], disk.path), answered, **state)
    # a read-only disk is found before the first of the files, a full one while results are written
    file = r"\S+" if reason is READ_ONLY else r"vqa_OpenEnded_mscoco_\S+_results"
    assert re.fullmatch(rf"error: {disk.path}/{name}/{file}\.json {reason}", error)
    assert listing(disk.after) == listing(answered)


@pytest.fixture(scope="session")
def stored(small_dataset, tmp_path_factory):
    """Stores that features and extract made before, and their sources."""
    folder, pth = (tmp_path_factory.mktemp(name) for name in ("stored", "pth"))
    sources = {"features": pth, "extract": DataFolder(small_dataset).image_folder("val")}
    for number in range(20):
        torch.save(torch.randn(1, 64, 8, 10), pth / f"{number}.pth")
    for name in sources:
        (folder / name).mkdir()
        succeed(store_command(name, sources, folder))
    return folder, sources


def store_command(name, sources, folder):
    source = "source" if name == "features" else "images"
    words = [f"{source}={sources[name]}", f"output={folder / name / 'x.h5'}", "force=true"]
    return [sys.executable, "-m", f"scripts.{name}", *words, "resize=null", "num_threads=2"]


# free bytes beside the rows: too few for the rows themselves; for HDF5's metadata; for the last of
# the metadata, when the store is finished
@pytest.mark.parametrize(
    ("name", "spare", "named"),
    [
        ("features", -50_000, "x.h5 needs "),
        ("features", 4096, "x.h5.partial cannot be written: "),
        ("features", 16384, "x.h5 cannot be written: "),
        ("extract", 4096, "x.h5.partial cannot be written: "),
    ],
)
@needs_mount
def test_disk_full_while_a_store_is_written(stored, disk, tmp_path, name, spare, named):
    before, sources = tmp_path / "before", stored[1]
    shutil.copytree(stored[0] / name, before / name)
    old = (before / name / "x.h5").read_bytes()
    with FeatureStore(before / name / "x.h5") as store:
        free = store.header.data_bytes + spare
    error = fail(disk, store_command(name, sources, disk.path), before, free=free)
    assert error.startswith(f"error: {disk.path}/{name}/{named}")
    assert (disk.after / name / "x.h5").read_bytes() == old
    succeed(store_command(name, sources, disk.after))
    assert (disk.after / name / "x.h5").read_bytes() == old
    assert [each.name for each in (disk.after / name).iterdir()] == ["x.h5"]


@needs_read_only
@pytest.mark.parametrize("name", ["features", "extract"])
def test_disk_read_only_while_a_store_is_written(stored, disk, name):
    error = fail(disk, store_command(name, stored[1], disk.path), stored[0], read_only=True)
    assert error.startswith(f"error: {disk.path}/{name}/x.h5")
    assert error.endswith("Read-only file system")
    assert listing(disk.after) == listing(stored[0])


def attention_command(run, folder):
    words = [f"checkpoint={run}", f"output={folder / 'x.h5'}", *QUIET]
    return [sys.executable, "-m", "scripts.attention_arrays", *words]


# bytes that are missing on the disk: some of those of the rows; fewer than HDF5's metadata take
@pytest.mark.parametrize(
    ("missing", "named"), [(60_000, "x.h5 needs "), (2000, "x.h5.partial cannot be written: ")]
)
@needs_mount
def test_disk_full_while_attention_is_written(multimodal_run, disk, tmp_path, missing, named):
    succeed(attention_command(multimodal_run, tmp_path))
    whole = (tmp_path / "x.h5").read_bytes()
    free = len(whole) - missing
    error = fail(disk, attention_command(multimodal_run, disk.path), free=free)
    assert error.startswith(f"error: {disk.path}/{named}")
    assert not (disk.after / "x.h5").exists()
    succeed(attention_command(multimodal_run, disk.after))
    assert listing(disk.after) == {"x.h5": whole}


@needs_read_only
def test_disk_read_only_while_attention_is_written(multimodal_run, disk):
    error = fail(disk, attention_command(multimodal_run, disk.path), read_only=True)
    assert error.startswith(f"error: {disk.path}/x.h5")
    assert error.endswith("Read-only file system")
