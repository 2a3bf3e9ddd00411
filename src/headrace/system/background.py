"""Background threads that end before the interpreter does.

At exit the interpreter does not wait for daemon threads. It frees its state while they run, and ends a thread
that returns from C code (uvloop, librdkafka) by force, which can crash the process. So every background
thread in this package is a BackgroundThread, which knows how it is stopped.
"""

import concurrent.futures.thread  # noqa: F401  registers its own hook; ours, registered later, runs before it
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

EXIT_S: Final = 5.0  # how long the exit of the interpreter waits for threads to stop
# Python 3.12 before 3.12.3 starts no thread once its exit has begun (gh-113964), and stopping an event loop
# may have to start one. There, these threads are left running, as any daemon thread is.
CANNOT_STOP: Final = (3, 12) <= sys.version_info < (3, 12, 3)

_running: Final[dict["BackgroundThread", None]] = {}  # in the order in which they were started


class BackgroundThread(threading.Thread):  # noqa: TID251  this is what to use instead
    """A thread that is stopped and joined at the exit of the interpreter.

    It is still a daemon thread, so that it cannot keep the process alive if it does not stop in time. Threads
    that it starts are daemon threads, too, unless it is created with daemon=False.
    """

    def __init__(
        self,
        target: Callable[..., object],
        *,
        name: str,
        stop: Callable[[], object] | None,
        args: tuple[Any, ...] = (),
        daemon: bool = True,
    ) -> None:
        """`stop` makes `target` return soon, and does nothing if it has returned already.

        It is called in the main thread while executors still accept work. With None the exit does not wait
        for the thread.
        """
        super().__init__(target=target, name=name, args=args, daemon=daemon or CANNOT_STOP)
        self._stop_at_exit = stop

    def start(self) -> None:
        """Start the thread; it will be stopped at exit."""
        _running[self] = None
        try:
            super().start()
        except BaseException:
            _running.pop(self, None)
            raise

    def run(self) -> None:
        try:
            super().run()
        finally:
            _running.pop(self, None)


def _stop_all() -> None:
    """Stop the threads, the last started first, and join all of them."""
    threads = list(_running)
    with contextlib.ExitStack() as stack:  # an error in one `stop` does not skip the others
        stack.callback(_join, threads)
        for thread in threads:
            if thread._stop_at_exit is not None:  # noqa: SLF001  of this module's own class
                stack.callback(thread._stop_at_exit)  # noqa: SLF001


def _join(threads: list[BackgroundThread]) -> None:
    deadline = time.monotonic() + EXIT_S
    for thread in threads:
        if thread._stop_at_exit is not None:  # noqa: SLF001
            thread.join(max(deadline - time.monotonic(), 0))


if not CANNOT_STOP:
    # `atexit` would be too late: by then executors refuse work, and stopping an event loop may need one.
    threading._register_atexit(_stop_all)  # type: ignore[attr-defined]  # noqa: SLF001  as concurrent.futures does
os.register_at_fork(after_in_child=_running.clear)  # a child has none of its parent's threads
