"""Proof that a simulated process has exited: the same face as `headrace.coordination.processes`.

A story decides whether its brokers can prove each other's exits, as on one machine, or have to wait for
sessions to expire.
"""

import asyncio
from collections.abc import Callable

from headrace.coordination.processes import ProcessExited, ProcessIdentity
from simulation.loop import SimLoop
from simulation.process import Process

_NOTICED_S = 0.02  # at most


def identify(process: Process, *, pid: int, life: int, is_provable: bool) -> None:
    """Let a process be known: to all others if its exit can be proven, else to itself alone."""
    namespace = "shared" if is_provable else process.name
    identity = process.identity = ProcessIdentity("simulated", namespace, pid, life)
    process.world.processes[identity] = process


def own_process() -> ProcessIdentity | None:
    return _running().identity


def has_exited(identity: ProcessIdentity) -> bool:
    return _is_known_here(identity) and not _process(identity).is_alive


class SimExitWatch:
    """Takes the place of `ExitWatch`."""

    def __init__(self, watched: Process, on_exit: Callable[[], None]) -> None:
        self._observer = _running()
        self._on_exit: Callable[[], None] | None = on_exit
        watched.exit_watchers.append(self._notice)

    @classmethod
    def of(cls, identity: ProcessIdentity, on_exit: Callable[[], None]) -> "SimExitWatch | None":
        if not _is_known_here(identity):
            return None
        if has_exited(identity):
            raise ProcessExited(f"process {identity.pid} has exited")
        return cls(_process(identity), on_exit)

    def _notice(self) -> None:
        if self._observer.is_alive:
            self._observer.call(self._exited, after_s=self._observer.world.random.random() * _NOTICED_S)

    def _exited(self) -> None:
        on_exit, self._on_exit = self._on_exit, None
        if on_exit is not None:
            on_exit()

    def close(self) -> None:
        self._on_exit = None


def _running() -> Process:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop), loop
    return loop.process


def _is_known_here(identity: ProcessIdentity) -> bool:
    own = own_process()
    return own is not None and own.pid_namespace == identity.pid_namespace


def _process(identity: ProcessIdentity) -> Process:
    found = _running().world.processes[identity]
    assert isinstance(found, Process), identity
    return found
