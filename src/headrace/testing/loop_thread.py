"""An event loop in a thread of its own: brokers run there while a test, which is no coroutine, runs."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from headrace.system.background import BackgroundThread
from headrace.system.event_loop import loop_factory

T = TypeVar("T")


class LoopThread:
    """Runs from `start` to `stop`; the names of all its threads begin with `name`."""

    def __init__(self, name: str, *, stop_at_exit: Callable[[], None]) -> None:
        """`stop_at_exit` is called at the interpreter's exit; it stops all work and calls `stop`."""
        self.name = name
        self._loop: asyncio.AbstractEventLoop
        self._started: Future[None] = Future()
        self._stopping: asyncio.Event
        self._thread = BackgroundThread(self._serve, name=name, stop=stop_at_exit)

    def start(self) -> None:
        self._thread.start()
        self._started.result()

    def stop(self) -> None:
        """Cancel the tasks of the loop, wait for them and for its threads, and close it."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop; return its result or raise its error."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function on the loop, and return its result."""

        async def called() -> T:
            return function(*args)

        return self.run(called())

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._until_stopped())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)  # `start` waits for this

    async def _until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix=self.name))
        self._stopping = asyncio.Event()
        self._started.set_result(None)
        await self._stopping.wait()
