"""Background threads at the exit of the interpreter."""

import subprocess
import sys
from textwrap import dedent

import pytest

from headrace.system.background import CANNOT_STOP

pytestmark = pytest.mark.skipif(CANNOT_STOP, reason="this Python starts no thread while it exits")

PREAMBLE = """
import atexit, os, sys, threading
from headrace.system.background import BackgroundThread

def alive():
    return sorted(thread.name for thread in threading.enumerate())

def forget(name, stopped=None):
    stopped = stopped or threading.Event()
    thread = BackgroundThread(stopped.wait, name=name, stop=lambda: (print("stop", name), stopped.set()))
    thread.start()
    return thread

atexit.register(lambda: print("at exit", *alive()))
"""


def run(script: str) -> tuple[int, str, str]:
    """Run a script that ends without stopping its threads: its exit status, stdout and stderr."""
    ended = subprocess.run(
        [sys.executable, "-c", PREAMBLE + dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_threads_are_stopped_and_joined_at_exit_the_last_first() -> None:
    script = """
    forget("first")
    forget("second")
    """
    assert run(script) == (0, "stop second\nstop first\nat exit MainThread\n", "")


def test_a_thread_that_has_ended_is_not_stopped_again() -> None:
    script = """
    stopped = threading.Event()
    thread = forget("first", stopped)
    stopped.set()
    thread.join()
    """
    assert run(script) == (0, "at exit MainThread\n", "")


def test_an_executor_still_takes_work_while_threads_are_stopped() -> None:
    script = """
    from concurrent.futures import ThreadPoolExecutor
    stopped = threading.Event()

    def stop():
        with ThreadPoolExecutor(1) as pool:
            pool.submit(stopped.set).result()

    BackgroundThread(stopped.wait, name="first", stop=stop).start()
    """
    assert run(script) == (0, "at exit MainThread\n", "")


def test_a_thread_that_cannot_be_stopped_does_not_keep_others_from_it() -> None:
    script = """
    forget("first")
    stopped = threading.Event()

    def stop():
        stopped.set()
        raise OSError("cannot be stopped")

    BackgroundThread(stopped.wait, name="second", stop=stop).start()
    """
    status, said, complaint = run(script)
    assert (status, said) == (0, "stop first\nat exit MainThread\n")
    assert "OSError: cannot be stopped" in complaint


def test_a_thread_without_a_stop_is_not_waited_for() -> None:
    script = """
    BackgroundThread(threading.Event().wait, name="abandoned", stop=None).start()
    """
    assert run(script) == (0, "at exit MainThread abandoned\n", "")


def test_a_thread_that_does_not_stop_in_time_does_not_keep_the_process() -> None:
    script = """
    import headrace.system.background
    headrace.system.background.EXIT_S = 0.1
    BackgroundThread(threading.Event().wait, name="deaf", stop=lambda: None).start()
    """
    assert run(script) == (0, "at exit MainThread deaf\n", "")


def test_a_forked_child_does_not_stop_the_threads_of_its_parent() -> None:
    script = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # of a fork next to threads
    forget("first")
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("the child has ended", flush=True)
    """
    assert run(script) == (0, "at exit MainThread\nthe child has ended\nstop first\nat exit MainThread\n", "")
