"""As much of an event loop as a broker needs, on the world's clock. There are no sockets, and no threads."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from simulation.world import Event

if TYPE_CHECKING:
    from simulation.process import Process

_THREAD_S = 0.03  # what a thread of the executor takes at most


class SimLoop(asyncio.AbstractEventLoop):
    """The loop of one process: whatever is put into it dies with the process.

    It takes any callback with any arguments, and its handles are events of the world: asyncio is content
    with that, and only its annotations are not.
    """

    def __init__(self, process: "Process") -> None:
        self.process = process
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._world = process.world

    def time(self) -> float:
        return self._world.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_at(self._world.now, callback, *args, context=context)

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_at(self._world.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Any:
        event = Event(self.process, when, callback, args, context)
        self._world.put(event)
        return event

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self.tasks.add(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run `func` a little later, in one go: a thread that nobody can see halfway."""
        del executor
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001  whoever waits for the thread gets it
                if not future.cancelled():
                    future.set_exception(error)
            else:
                if not future.cancelled():
                    future.set_result(result)

        self.call_later(self._world.random.random() * _THREAD_S, work)
        return future

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if "exception" in context:
            self.process.fail(f"{context['message']}: {context['exception']!r}")
