"""Proof that a process on this machine has exited, so that other brokers need not wait for its session.

A refused connection or a missing response proves nothing: the process may be alive and serving clients. The
kernel knows. A process is identified by its pid and start time, within one pid namespace of one boot of one
machine; its pidfd becomes readable when it has exited. A process on another machine cannot be checked.
"""

import asyncio
import os
import select
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_CLOSED = -1
_STAT_START_TIME = 19  # field 22 of /proc/PID/stat, counted from the one after the program's name


class ProcessExited(Exception):
    """The process is proven to have exited."""


class ProcessIdentity(NamedTuple):
    """Identifies one process among those of all machines."""

    boot_id: str
    pid_namespace: str
    pid: int
    start_time: int  # clock ticks after boot


def own_process() -> ProcessIdentity | None:
    """Return the identity of this process, or None if /proc is not available."""
    pid = os.getpid()
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return ProcessIdentity(boot_id, str(Path("/proc/self/ns/pid").readlink()), pid, _start_time(pid))
    except OSError:
        return None


def has_exited(process: ProcessIdentity) -> bool:
    """Return whether `process` is proven to have exited; False also if that cannot be known here."""
    try:
        descriptor = _open_pidfd(process)
    except ProcessExited:
        return True
    if descriptor is not None:
        os.close(descriptor)
    return False


class ExitWatch:
    """Calls a function on the event loop when a process exits, unless it is closed before."""

    def __init__(self, descriptor: int, on_exit: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._on_exit = on_exit
        self._loop.add_reader(descriptor, self._exited)

    @classmethod
    def of(cls, process: ProcessIdentity, on_exit: Callable[[], None]) -> "ExitWatch | None":
        """Watch `process`. Return None if that is impossible here; raise ProcessExited if it has exited."""
        descriptor = _open_pidfd(process)
        return None if descriptor is None else cls(descriptor, on_exit)

    def _exited(self) -> None:
        self.close()
        self._on_exit()

    def close(self) -> None:
        if self._descriptor != _CLOSED:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = _CLOSED


def _open_pidfd(process: ProcessIdentity) -> int | None:
    """Return a file descriptor that becomes readable when `process` exits.

    Return None if it runs on another machine or in another container, or if the kernel has no pidfds. Raise
    ProcessExited if it has already exited.
    """
    pidfd_open, own = getattr(os, "pidfd_open", None), own_process()
    if (
        pidfd_open is None
        or own is None
        or (own.boot_id, own.pid_namespace) != (process.boot_id, process.pid_namespace)
    ):
        return None
    try:
        descriptor: int = pidfd_open(process.pid)
    except ProcessLookupError:
        raise ProcessExited(f"no process has pid {process.pid}") from None
    except OSError:
        return None
    try:
        started = _start_time(process.pid)
    except OSError:
        started = None  # it has just been reaped, or /proc hides the processes of other users
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    exited = (started is not None and started != process.start_time) or bool(poll.poll(0))
    if exited or started is None:
        os.close(descriptor)
        if exited:
            raise ProcessExited(f"process {process.pid}, started at {process.start_time}, has exited")
        return None
    return descriptor


def _start_time(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[_STAT_START_TIME])
