"""Tests that were started in the background, where INT and HUP are ignored."""

import os
import signal
import subprocess
import sys

import pytest

from signals import STOPPING, ignored_by_children

SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]


@pytest.mark.parametrize("number", STOPPING)
def test_a_program_that_a_test_starts_is_stopped_by(number: signal.Signals) -> None:
    with subprocess.Popen(SLEEP, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        assert started.stdout is not None
        started.stdout.readline()
        started.send_signal(number)
        try:
            assert started.wait(60) == -number
        finally:
            started.kill()


def test_that_holds_for_tests_in_the_background_too() -> None:
    this = f"{__file__}::{test_a_program_that_a_test_starts_is_stopped_by.__name__}"
    with ignored_by_children():
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout", this],
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert "2 passed" in ended.stdout
