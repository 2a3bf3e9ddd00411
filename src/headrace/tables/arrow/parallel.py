"""Iterators that run in threads; what they yield comes in the order in which it is ready."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from headrace.system.background import BackgroundThread

_WAITING: Final = 2  # items of each thread that wait for the consumer
_CHECK_S: Final = 0.2  # how often a thread that waits for room sees that it is to stop

Item = TypeVar("Item")
Work = Callable[[], Iterator[Item]]


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Done:
    pass


def in_parallel(works: Sequence[Work[Item]], threads: int) -> Iterator[Item]:
    """Yield what all `works` yield, with so many of them running at a time; raise the first error."""
    threads = min(threads, len(works))
    if threads <= 1:
        for work in works:
            yield from work()
    else:
        yield from in_threads(works, threads)


def in_threads(works: Sequence[Work[Item]], threads: int) -> Iterator[Item]:
    """As `in_parallel`, and always in threads: the caller's thread can be interrupted while it waits."""
    waiting = deque(works)
    found: queue.Queue[Item | _Failed | _Done] = queue.Queue(_WAITING * threads)
    stopped = threading.Event()
    running = [
        BackgroundThread(_run, name="headrace-reader", stop=stopped.set, args=(waiting, found, stopped))
        for _ in range(threads)
    ]
    for each in running:
        each.start()
    try:
        while threads:
            item = found.get()
            if isinstance(item, _Failed):
                raise item.error
            if isinstance(item, _Done):
                threads -= 1
            else:
                yield item
    finally:
        stopped.set()


def _run(
    waiting: deque[Work[Item]], found: "queue.Queue[Item | _Failed | _Done]", stopped: threading.Event
) -> None:
    last: _Failed | _Done = _Done()
    try:
        while waiting and not stopped.is_set():
            try:
                work = waiting.popleft()
            except IndexError:  # another thread was quicker
                break
            for item in work():
                if not _put(found, item, stopped):
                    return
    except BaseException as error:  # noqa: BLE001  the consumer raises it
        last = _Failed(error)
    _put(found, last, stopped)


def _put(
    found: "queue.Queue[Item | _Failed | _Done]", item: Item | _Failed | _Done, stopped: threading.Event
) -> bool:
    """Put an item as soon as there is room; return False if nobody wants it any more."""
    while not stopped.is_set():
        try:
            found.put(item, timeout=_CHECK_S)
        except queue.Full:
            continue
        return True
    return False
