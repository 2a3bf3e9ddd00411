"""When the flush of each log is due. Only logs that have something to flush are kept, the earliest first."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

from headrace.storage.log import Log


class FlushSchedule:
    """A queue of logs by `Log.flush_due_ms`.

    The entry of a log may be too early, because the log was flushed meanwhile: it is corrected when its time
    has come, so that a log that is flushed often does not fill the queue.
    """

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, Log]] = []  # due, a number that makes entries comparable, log
        self._due_ms: dict[Log, int] = {}  # of the valid entry of each log
        self._numbers = count()

    def put(self, log: Log) -> None:
        """Queue a log that has changed, unless it has nothing to flush or an early enough entry."""
        due_ms = log.flush_due_ms
        if due_ms is None:
            return
        queued_ms = self._due_ms.get(log)
        if queued_ms is None or due_ms < queued_ms:
            self._due_ms[log] = due_ms
            heappush(self._queue, (due_ms, next(self._numbers), log))

    def remove(self, log: Log) -> None:
        self._due_ms.pop(log, None)

    def take_due(self, now_ms: int) -> Iterator[Log]:
        """Remove and yield the logs that are to be flushed now."""
        while self._queue and self._queue[0][0] <= now_ms:
            due_ms, _, log = heappop(self._queue)
            if self._due_ms.get(log) != due_ms:
                continue  # the log was removed, or has an earlier entry
            del self._due_ms[log]
            actual_ms = log.flush_due_ms
            if actual_ms is None:
                continue
            if actual_ms > now_ms:
                self.put(log)
            else:
                yield log
