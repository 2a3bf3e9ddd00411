"""A process: a program on a machine, which can be stopped, continued and killed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from headrace.coordination.processes import ProcessIdentity
from simulation.loop import SimLoop
from simulation.world import Crash, Event, World

if TYPE_CHECKING:
    from simulation.network import Host, Network


class Process:
    """One life of a program. What it has planned dies with it."""

    def __init__(self, world: World, network: "Network", host: "Host") -> None:
        self.world = world
        self.network = network
        self.host = host
        self.name = host.name
        self.is_alive = True
        self.is_paused = False
        self.stalled: list[Event] = []  # what came due while it was paused
        self.loop = SimLoop(self)  # type: ignore[abstract]  # there are no sockets here, nor what they need
        self.identity: ProcessIdentity | None = None
        self.exit_watchers: list[Callable[[], None]] = []
        self.on_step: Callable[[], None] | None = None
        self._failure: str | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Begin `work` in this process; if it fails, so does the story."""
        self.call(self._begin, work)

    def _begin(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self.loop.create_task(work)
        self.world.graveyard.append(task)
        task.add_done_callback(_raise)

    def call(self, function: Callable[..., Any], *args: Any, after_s: float = 0.0) -> Event:
        """Have `function` called in this process."""
        return self.call_at(self.world.now + after_s, function, *args)

    def call_at(self, when_s: float, function: Callable[..., Any], *args: Any) -> Event:
        event = Event(self, when_s, function, args)
        self.world.put(event)
        return event

    def pause(self) -> None:
        self.is_paused = True
        self.world.say(self.name, "is stopped (SIGSTOP)")

    def resume(self) -> None:
        """Go on: everything that came due meanwhile happens now, in its order."""
        self.world.say(self.name, "goes on (SIGCONT)")
        self.is_paused = False
        stalled, self.stalled = self.stalled, []
        for event in stalled:
            event.when_s = self.world.now
            self.world.put(event)

    def kill(self) -> None:
        self.is_alive = False
        for notice in self.exit_watchers:
            notice()
        self.world.graveyard += [*self.loop.tasks, *self.stalled]
        self.stalled.clear()

    # -- what goes wrong in it -----------------------------------------------------------------

    def fail(self, why: str) -> None:
        """Something has ended that nobody will miss; the next look finds out."""
        if self.is_alive and self._failure is None:
            self._failure = why

    def after_step(self) -> None:
        if self._failure is not None:
            raise Crash(f"{self.name}: {self._failure}")
        if self.on_step is not None:
            self.on_step()

    def check_tasks(self) -> None:
        """No task has died of something that nobody took: what it was to do is not done any more."""
        for task in list(self.loop.tasks):
            if task.done() and task._log_traceback:
                raise Crash(f"{self.name}: a task has died of {task.exception()!r}: {task!r}")


def _raise(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
