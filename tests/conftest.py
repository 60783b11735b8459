"""Shared by all tests: which devices there are, and which skips a run may have."""

import signal

import hypothesis
import pytest
import torch

# The same cases in every run; `--hypothesis-profile=default` looks for new ones.
hypothesis.settings.register_profile("reproducible", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("reproducible")

# A shell's background ignores Ctrl-C, and so would every command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--skips-only",
        default=None,
        help="comma-separated markers; any skipped test without one of them fails the run",
    )


def pytest_runtest_setup(item):
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request):
    """Every device there is."""
    return torch.device(request.param)


@pytest.fixture(scope="session")
def small_dataset(tmp_path_factory):
    """`shapes` with 120 questions to train on and 60 to validate: data=custom data.root=…"""
    from data.shapes.build import Sizes, build_shapes  # not for the tests of attention alone

    root = tmp_path_factory.mktemp("small") / "shapes"
    build_shapes(root, sizes=Sizes(train=12, val=6, test=4, human=12), num_workers=1)
    return root


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.marker_names = [marker.name for marker in item.iter_markers()]
    return report


def pytest_terminal_summary(terminalreporter):
    for report in unexpected_skips(terminalreporter):
        terminalreporter.write_line(f"SKIPPED WITHOUT LEAVE {report.nodeid}", red=True)


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
