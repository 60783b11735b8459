"""Shared by all tests: which devices there are, and which skips a run may have."""

import contextlib
import gc
import itertools
import os
import shutil
import signal
import sys

import hypothesis
import pytest
import torch

# The same cases in every run; `--hypothesis-profile=default` looks for new ones.
hypothesis.settings.register_profile("reproducible", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("reproducible")

# A shell's background ignores Ctrl-C, and so would every command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What is imported and collected stays: the garbage collector need not go over it again and again.
gc.disable()


def pytest_configure(config):
    """Hide the GPUs from all tests but those of `-m cuda`: a command that sees one runs on it.

    A run would not resume to the same bits there, and two processes need two GPUs.
    """
    if config.getoption("markexpr") != "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # to torch as well: it looks when it is first asked


# The files that take longest come first, so that both workers end at about the same time.
LONGEST = (
    "scripts/cluster/test_launch.py", "scripts/paper/test_report.py",
    "mcan/runtime/test_compilation.py", "scripts/test_sweep.py", "scripts/test_train.py",
    "scripts/test_first_look.py", "benchmarks/test_bench.py", "scripts/test_doctor.py",
    "fake_cuda/test_trace.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():  # tests/gpu alone says what it lacks
        items[:] = [
            item
            for item in items
            if "gpu" in item.path.parts or not item.get_closest_marker("cuda")
        ]
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


# Tables that a user's module may add to, by the modules that hold them.
TABLES = {
    "attention.heads.registry": "_heads",
    "data.backbones.registry": "BACKBONES",
    "data.features.dtype": "DTYPES",
    "data.vqa.layout": "LAYOUTS",
    "mcan.evaluation.metrics": "METRICS",
    "mcan.head_schedule": "SCHEDULES",
    "mcan.training.learning_rate": "RATES",
    "mcan.training.trackers.tracker": "TRACKERS",
}


@contextlib.contextmanager
def registrations_undone():
    """What is registered within is gone afterwards, with the users' modules that did it."""
    loaded = [getattr(sys.modules[name], of) for name, of in TABLES.items() if name in sys.modules]
    tables = [table if isinstance(table, dict) else table.values for table in loaded]
    before, newest = [dict(table) for table in tables], next(reversed(sys.modules))
    yield
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)
    for name in list(itertools.takewhile(lambda name: name != newest, reversed(sys.modules))):
        file = getattr(sys.modules[name], "__file__", None) or ""
        if "/pytest-of-" in file or "/examples/" in file:
            del sys.modules[name]


@pytest.fixture(autouse=True, scope="module")
def no_registration_outlives_a_file():
    with registrations_undone():
        yield


@pytest.fixture(autouse=True)
def no_registration_outlives_a_test():
    with registrations_undone():
        yield


def pytest_addoption(parser):
    parser.addoption(
        "--skips-only",
        default=None,
        help="comma-separated markers; any skipped test without one of them fails the run",
    )


def pytest_runtest_setup(item):
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    """The CPU and, with `-m cuda`, the first GPU."""
    return torch.device("cuda", 0) if request.param == "cuda" else torch.device("cpu")


@pytest.fixture(scope="session")
def small_dataset(tmp_path_factory):
    """`shapes` with 120 questions to train on and 60 to validate: data=custom data.root=…"""
    from data.shapes.build import Sizes, build_shapes  # not for the tests of attention alone

    root = tmp_path_factory.mktemp("small") / "shapes"
    build_shapes(root, sizes=Sizes(train=12, val=6, test=4, human=12), num_workers=1)
    return root


@pytest.fixture
def data(small_dataset, tmp_path):
    """A copy of the small dataset, without its images and human maps, that a test may change."""
    from data.vqa.data_folder import DataFolder

    ignore = shutil.ignore_patterns("images", "human_attention")
    return DataFolder(shutil.copytree(small_dataset, tmp_path / "data", ignore=ignore))


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory):
    """The folder of the runs below; tests write elsewhere."""
    return tmp_path_factory.mktemp("trained_runs")


@pytest.fixture(scope="session")
def multimodal_run(small_dataset, trained_runs):
    from tests.small_models import train_small

    return train_small(small_dataset, trained_runs, "mm")


@pytest.fixture(scope="session")
def discrete_run(small_dataset, trained_runs):
    from tests.small_models import train_small

    return train_small(small_dataset, trained_runs, "discrete", "attention=discrete", "seed=2")


@pytest.fixture(scope="session")
def peaky_run(multimodal_run):
    """A model whose attention has every number of components, and to whose answers it matters."""
    from tests.small_models import sharpen

    return sharpen(multimodal_run, "peaky")


@pytest.fixture(scope="session")
def runs_of_every_head(multimodal_run, tmp_path_factory):
    """One trained network under all heads: <runs>/multimodal, <runs>/unimodal, <runs>/discrete."""
    from tests.small_models import copy_with_head, sharpen

    folder = tmp_path_factory.mktemp("runs")
    run = sharpen(multimodal_run, folder / "multimodal", factor=20.0)
    for head in ("unimodal", "discrete"):
        copy_with_head(run, folder / head, head)
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.marker_names = [marker.name for marker in item.iter_markers()]
    return report


def pytest_terminal_summary(terminalreporter):
    for report in unexpected_skips(terminalreporter):
        terminalreporter.write_line(f"SKIPPED UNEXPECTEDLY {report.nodeid}", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and unexpected_skips(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def unexpected_skips(reporter):
    allowed = reporter.config.getoption("--skips-only")
    if allowed is None:
        return []
    allowed = set(allowed.split(","))
    skipped = reporter.stats.get("skipped", [])
    return [s for s in skipped if not allowed & {*getattr(s, "marker_names", [])}]
