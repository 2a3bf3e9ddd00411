"""Signals that stop a command, and Ctrl-C while Spark is starting."""

import signal
import subprocess
import sys

import pytest

from headrace.cli.support.interrupts import ctrl_c_waits
from signals import ignored_by_children


def press(times: int, done: list[str]) -> None:
    with ctrl_c_waits():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        done.append("the rest")


def test_ctrl_c_interrupts_behind_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        press(1, done)
    assert done == ["the rest"]
    assert "as soon as Spark has started" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_one_does_not_wait() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        press(2, done)
    assert done == []


def test_a_handler_that_was_put_there_meanwhile_stays() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with ctrl_c_waits():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_stays_ignored_where_it_was() -> None:
    with ignored_by_children():
        done: list[str] = []
        press(2, done)
        assert done == ["the rest"]
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_signal_that_is_ignored_from_the_start_does_not_stop_a_command() -> None:
    def stopping() -> str:
        script = (
            "from headrace.cli.support.interrupts import STOPPING; print(*[each.name for each in STOPPING])"
        )
        return subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()

    assert stopping() == "SIGTERM SIGINT SIGHUP"
    with ignored_by_children():
        assert stopping() == "SIGTERM"
