"""Processes that work together: what they exchange, and their devices."""

import contextlib
import gc
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import attention
from data.text.word_lists import prepare_words
from data.vqa.data_folder import DataFolder
from mcan.evaluation.evaluation_split import open_evaluation_split
from mcan.evaluation.evaluator import evaluate_split
from mcan.network.architecture import build_model
from mcan.runtime.distributed import (
    World,
    choose_device,
    describe_failure,
    find_world,
    open_world,
)
from mcan.runtime.stop_request import StoppedOnRequestError
from tests.mcan.runtime.stand_in_gpus import stand_in
from tests.mcan.runtime.together import exchange, free_port, run_together, start_processes
from tests.small_runs import compose, settings

pytestmark = pytest.mark.filterwarnings("ignore:a constant image")


def validate(world, overrides):
    """Predictions of an untrained model on the validation questions."""
    config = compose(overrides)
    folder = DataFolder(config.data.root)
    words = prepare_words(folder)
    validation = open_evaluation_split(folder, "val", words, config.runtime, world.device)
    torch.manual_seed(0)
    sizes = {
        "num_words": len(words.vocabulary),
        "num_answers": len(words.answers),
        "num_features": validation.loader.stores.num_features,
    }
    head = attention.build("multimodal", lam=0.0)
    model = build_model(config.model, head, **sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)  # so that answers differ
    return vars(evaluate_split(model, validation, world, torch.float32).predictions)


@pytest.fixture(scope="module")
def results(small_dataset, tmp_path_factory):
    """By (work, number of processes): what each process has in the end."""
    small = settings(small_dataset, tmp_path_factory.mktemp("runs"))
    whole = [*small, "runtime.evaluation_batch_size=1000", "runtime.mixing=all"]
    jobs = {
        ("validate", 1): (1, validate, (small,)),
        ("validate", 3): (3, validate, (whole,)),
        ("exchange", 3): (3, exchange, ()),
    }
    done = run_together(list(jobs.values()), tmp_path_factory.mktemp("processes"))
    return dict(zip(jobs, done, strict=True))


def test_processes_without_any_batch_still_have_all_answers(results):
    """One batch for three processes; its size may change the last bits of a probability."""
    (alone,) = results["validate", 1]
    assert len(alone["question_ids"].unique()) == 60
    assert torch.equal(alone["question_ids"], alone["question_ids"].sort().values)
    assert len(alone["answers"].unique()) > 1  # else the comparison proves little
    for result in results["validate", 3]:
        for name in ("question_ids", "answers", "num_components"):
            assert torch.equal(result[name], alone[name])


def test_all_get_the_first_ones_value_everyones_values_and_the_sum(results):
    for result in results["exchange", 3]:
        assert result["shared"] == {"from": 0}
        assert result["gathered"] == [("rank", 0), ("rank", 1), ("rank", 2)]
        assert result["sum"] == [3.0, 3.0]


def test_a_process_alone_needs_no_group(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    world = find_world("cpu")
    world.join()
    assert world == World(0, 1, torch.device("cpu"))
    assert not torch.distributed.is_initialized()
    assert exchange(world) == {"shared": {"from": 0}, "gathered": [("rank", 0)], "sum": [1.0, 0.0]}


@pytest.mark.parametrize("variable", ["RANK", "WORLD_SIZE"])
def test_one_variable_of_torchruns_alone_starts_no_group(monkeypatch, variable):
    """Some clusters set one for a program of one process."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "2")
    world = find_world("cpu")
    world.join()
    assert world == World(0, 1, torch.device("cpu"))


@pytest.mark.parametrize(("patience", "meeting"), [(0, 2), (1, 2), (90, 90)])
def test_others_may_come_late_but_an_exchange_keeps_its_own_limit(monkeypatch, patience, meeting):
    limits = {}

    def rendezvous(place, timeout):
        limits["meeting"] = timeout
        yield torch.distributed.HashStore(), 0, 2

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.distributed, "rendezvous", rendezvous)
    monkeypatch.setattr(
        torch.distributed, "init_process_group", lambda *_, **options: limits.update(options)
    )
    World(0, 2, torch.device("cpu"), timeout_minutes=2).join(patience)
    assert limits["meeting"] == timedelta(minutes=meeting)
    assert limits["timeout"] == limits["store"].timeout == timedelta(minutes=2)


def test_cuda_without_a_number_is_each_processs_own_gpu(monkeypatch):
    stand_in(monkeypatch, ["A100"] * 4, [8] * 4)
    own = [torch.device("cuda", 2), torch.device("cuda", 2), torch.device("cpu")]
    assert [choose_device(name, 2, 4) for name in (None, "cuda", "cpu")] == own
    assert choose_device("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("name", "local_size", "message"),
    [
        (None, 5, "5 processes were started on .*, where torch sees 4 GPUs: start at most one per"),
        ("cuda", 8, "8 processes were started on .*GPUS=4"),
        ("cuda:1", 2, "runtime.device=cuda:1 is one GPU, but 2 processes were started on "),
        ("cuda:4", 1, "there is no cuda:4 here: torch sees 4 GPUs, numbered from 0"),
    ],
)
def test_more_processes_than_gpus_are_rejected_on_each(monkeypatch, name, local_size, message):
    """Also on the first ones: before anything is copied, read or joined."""
    stand_in(monkeypatch, ["A100"] * 4, [8] * 4)
    places = {"RANK": "0", "WORLD_SIZE": local_size, "LOCAL_RANK": "0"}
    for variable, value in {**places, "LOCAL_WORLD_SIZE": local_size}.items():
        monkeypatch.setenv(variable, str(value))
    with pytest.raises(ValueError, match=message) as error:
        find_world(name)
    assert "\n" not in str(error.value)


NCCL = """NCCL error in: ProcessGroupNCCL.cpp:77, unhandled system error, NCCL version 2.28.9
ncclSystemError: System call (e.g. socket, malloc) or external library call failed.
Last error:
socketStartConnect: Connect to 10.0.0.2<41193> failed : No route to host
Exception raised from create at NCCLUtils.cpp:77 (most recent call first):
frame #0: c10::Error::Error"""


@pytest.mark.parametrize(
    ("message", "known"),
    [
        (NCCL, "process 1 of 2 on cpu could not exchange with the others"),
        (
            "[pair.cc:547] Connection closed by peer [127.0.0.1]:11",
            "process 1 of 2 got no reply from another process: it has ended",
        ),
        (
            "ncclRemoteError: A call failed possibly due to a remote process exiting prematurely",
            "process 1 of 2 got no reply from another process: it has ended",
        ),
        (
            "[unbound_buffer.cc:81] Timed out waiting 18000ms for recv operation to complete",
            "process 1 of 2 got no reply from another process: none within runtime.timeout_minut",
        ),
    ],
)
def test_a_failed_exchange_is_told_with_its_librarys_own_reason(message, known):
    told = describe_failure(World(1, 2, torch.device("cpu"), 3), message)
    assert told.startswith(known)
    words = " ".join(message.partition("Exception raised")[0].split())
    assert told.endswith(f"({words})")
    assert "frame #0" not in told


def test_a_command_that_a_test_starts_sees_no_gpu():
    """It would train there, and two processes need two: tests/conftest.py hides them."""
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_a_device_that_is_not_there_is_rejected(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device(None, 0) == torch.device("cpu")
    with pytest.raises(ValueError, match="'cuda' was asked for, but torch finds no CUDA"):
        choose_device("cuda", 0)
    for other in ("gpu", "meta", "mps"):
        with pytest.raises(ValueError, match=f"there is no device '{other}'"):
            choose_device(other, 0)


def test_what_the_first_process_cannot_do_is_raised():
    alone = World(0, 1, torch.device("cpu"))
    assert alone.run_on_first(sum, [2, 3]) == 5
    with pytest.raises(FileNotFoundError, match="no_such_file"):
        alone.run_on_first(Path("no_such_file").read_text)


@pytest.mark.parametrize(
    ("backend", "error", "is_left"),
    [
        ("nccl", None, True),
        ("nccl", StoppedOnRequestError, True),  # all raise it together
        ("nccl", ValueError, False),
        ("nccl", SystemExit, False),
        ("gloo", ValueError, True),
    ],
)
def test_one_that_an_error_ends_does_not_wait_until_others_leave_nccl(
    monkeypatch, backend, error, is_left
):
    left = []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_backend", lambda: backend)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: left.append(True))
    with contextlib.suppress(*[error] if error else []), open_world("cpu", 1):
        if error:
            raise error
    assert bool(left) == is_left


def work_in_group(fails):
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()
    if fails:
        raise ValueError("a mistake")


def count_threads():
    names = [file.read_text() for file in Path("/proc/self/task").glob("*/comm")]
    return sum("gloo_runloop" in name for name in names)


def count_around_groups(rank, ports, file):
    """Threads in a group and after it: one that ends well, and one that fails."""
    gc.disable()  # else it may run by chance, and release what the group itself should
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1")
    counts = []
    for fails, port in zip((False, True), ports, strict=True):
        os.environ.update(MASTER_PORT=str(port))
        with contextlib.suppress(ValueError), open_world("cpu", 1) as world:
            world.join()
            torch.distributed.barrier()  # a thread gives itself its name
            before = count_threads()
            work_in_group(fails)
        counts.append((before, count_threads()))
    file.write_text(json.dumps(counts))


def test_no_thread_of_a_group_is_left_when_it_ends(tmp_path):
    """One that still frees a tensor while Python ends aborts the process, now and then."""
    ports, file = [free_port(), free_port()], tmp_path / "counts"
    start_processes(count_around_groups, (ports, file), 1)
    counts = json.loads(file.read_text())
    assert len(counts) == 2
    for before, after in counts:
        assert before > 0
        assert after == 0
