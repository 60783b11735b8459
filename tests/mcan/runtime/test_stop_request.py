"""Requests to stop are remembered, and what was ignored stays ignored."""

import os
import signal

import pytest

from mcan.runtime.stop_request import ASKED, StopRequest


@pytest.fixture(autouse=True)
def _as_in_a_terminal():
    """Nothing is ignored at first, even if these tests themselves run under nohup."""
    before = {number: signal.getsignal(number) for number in ASKED}
    for number in ASKED:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def tell_myself(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ASKED)
def test_a_signal_is_remembered_and_the_old_handlers_come_back(number):
    before = [signal.getsignal(each) for each in ASKED]
    with StopRequest() as stop:
        assert not stop.is_made
        tell_myself(number)
        assert stop.is_made
    assert [signal.getsignal(each) for each in ASKED] == before


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
