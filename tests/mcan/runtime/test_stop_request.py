"""Requests to stop are remembered, and what was ignored stays ignored."""

import os
import signal

import pytest

from mcan.runtime.stop_request import (
    ASK_EVERY,
    STOP_SIGNALS,
    StoppedOnRequestError,
    StopRequest,
    until_stopped,
)
from tests.mcan.runtime.together import run_together
from tests.small_runs import ALONE


@pytest.fixture(autouse=True)
def _as_in_a_terminal():
    """Nothing is ignored at first, even if these tests themselves run under nohup."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def tell_myself(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_is_remembered_and_the_old_handlers_come_back(number):
    before = [signal.getsignal(each) for each in STOP_SIGNALS]
    with StopRequest() as stop:
        assert not stop.is_made
        tell_myself(number)
        assert stop.is_made
    assert [signal.getsignal(each) for each in STOP_SIGNALS] == before


def test_a_second_interrupt_ends_at_once():
    def interrupt_twice():
        with StopRequest():
            tell_myself(signal.SIGINT)
            tell_myself(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupt_twice()


def test_a_second_sigterm_does_not():
    with StopRequest() as stop:
        tell_myself(signal.SIGTERM)
        tell_myself(signal.SIGTERM)
    assert stop.is_made


def test_under_nohup_a_closed_terminal_does_not_stop_a_run():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopRequest() as stop:
            tell_myself(signal.SIGHUP)
        assert not stop.is_made
    finally:
        signal.signal(signal.SIGHUP, before)


COUNTS = (2 * ASK_EVERY + 8, 3, 0)  # items of each process


def work_until_stopped(world, asked=None):
    """How many of its items a process has done, and whether it was stopped.

    `asked` is the rank that is asked to stop, and at which of its items.
    """
    stop, done = StopRequest(), 0
    try:
        for item in until_stopped(range(COUNTS[world.rank]), stop, world):
            stop.is_made |= (world.rank, item) == asked
            done += 1
    except StoppedOnRequestError:
        return done, True
    return done, False


def test_processes_stop_together_though_some_have_no_items_left(tmp_path):
    requests = [None, (1, 1), (0, 3), (0, ASK_EVERY + 1)]
    jobs = [(3, work_until_stopped, (asked,)) for asked in requests]
    none, *stopped = run_together(jobs, tmp_path)
    assert none == [(count, False) for count in COUNTS]
    for results, first in zip(stopped, (ASK_EVERY, ASK_EVERY, 2 * ASK_EVERY), strict=True):
        assert results == [(first, True), (3, True), (0, True)]


@pytest.mark.parametrize("count", [0, 1, ASK_EVERY - 1, ASK_EVERY, ASK_EVERY + 1])
def test_a_process_alone_gets_all_its_items_or_stops(count):
    stop = StopRequest()
    assert list(until_stopped(range(count), stop, ALONE)) == list(range(count))
    stop.is_made = True
    with pytest.raises(StoppedOnRequestError):
        list(until_stopped(range(count), stop, ALONE))
