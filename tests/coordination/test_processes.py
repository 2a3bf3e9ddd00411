"""Proof that a process has exited: from the kernel, of real processes."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.coordination.processes import ExitWatch, ProcessExited, ProcessIdentity, has_exited, own_process

NOBODY = 2**22 - 1  # no process has this pid

PRINT_IDENTITY = (
    "import sys; from headrace.coordination.processes import own_process; "
    "print(*own_process(), sep='\\n', flush=True); sys.stdin.read()"
)


def own() -> ProcessIdentity:
    identity = own_process()
    assert identity is not None
    return identity


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def child() -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", PRINT_IDENTITY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        yield process
        process.kill()


def identity_of(child: "subprocess.Popen[str]") -> ProcessIdentity:
    assert child.stdout is not None
    boot_id, namespace, pid, start = (child.stdout.readline().strip() for _ in range(4))
    return ProcessIdentity(boot_id, namespace, int(pid), int(start))


def test_a_process_that_runs_has_not_exited(child: "subprocess.Popen[str]") -> None:
    assert not has_exited(own())
    assert not has_exited(identity_of(child))


def test_a_process_that_is_stopped_has_not_exited(child: "subprocess.Popen[str]") -> None:
    identity = identity_of(child)
    child.send_signal(signal.SIGSTOP)

    assert not has_exited(identity)


def test_a_process_that_was_killed_has_exited_before_and_after_it_is_reaped(
    child: "subprocess.Popen[str]",
) -> None:
    identity = identity_of(child)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie: nobody has reaped it
    assert has_exited(identity)

    child.wait()
    assert has_exited(identity)


def test_another_process_with_the_same_pid_is_another_process() -> None:
    assert has_exited(own()._replace(start_time=own().start_time - 1))


@pytest.mark.parametrize(
    "elsewhere",
    [own()._replace(boot_id="another", pid=NOBODY), own()._replace(pid_namespace="another", pid=NOBODY)],
    ids=["machine", "container"],
)
def test_of_a_process_elsewhere_nothing_is_proven(elsewhere: ProcessIdentity) -> None:
    assert not has_exited(elsewhere)

    async def watch() -> None:
        assert ExitWatch.of(elsewhere, lambda: None) is None

    asyncio.run(watch())


def test_an_exit_is_noticed(child: "subprocess.Popen[str]") -> None:
    identity = identity_of(child)

    async def story() -> None:
        exited = asyncio.Event()
        watch = ExitWatch.of(identity, exited.set)
        assert watch is not None
        await asyncio.sleep(0)
        assert not exited.is_set()
        child.kill()
        async with asyncio.timeout(30):
            await exited.wait()
        watch.close()
        with pytest.raises(ProcessExited):
            ExitWatch.of(identity, exited.set)

    asyncio.run(story())


def test_a_watch_that_is_closed_says_nothing_and_leaves_no_descriptor(child: "subprocess.Popen[str]") -> None:
    identity = identity_of(child)

    async def story() -> None:
        before = descriptors()
        exits: list[int] = []
        watch = ExitWatch.of(identity, lambda: exits.append(1))
        assert watch is not None
        watch.close()
        watch.close()
        child.kill()
        child.wait()
        await asyncio.sleep(0.01)
        assert exits == []
        assert descriptors() == before

    asyncio.run(story())
