"""Offsets that a query commits for a consumer group, so that tools show its lag.

The query's position is in its checkpoint. A thread commits the newest offsets, so that no batch waits for it.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from headrace.client.errors import ClientError
from headrace.system.background import BackgroundThread
from headrace.tables.reader.offsets import Offsets

FLUSH_S: Final = 3.0

logger = logging.getLogger(__name__)


class GroupCommits:
    """Commits offsets in the background, the newest only: offsets that were not sent yet are replaced."""

    def __init__(self, group: str, commit: Callable[[str, Offsets], None]) -> None:
        """`commit` sends a request and waits for its response; it raises ClientError."""
        self._group = group
        self._commit = commit
        self._changed = threading.Condition()
        self._next: Offsets | None = None  # to be committed
        self._last: Offsets | None = None  # handed in last
        self._is_busy = False
        self._thread: BackgroundThread | None = None
        self._is_stopped = False

    def submit(self, offsets: Offsets) -> None:
        """Commit these offsets soon, unless they were the last ones, too."""
        with self._changed:
            if offsets == self._last:
                return
            self._next = self._last = offsets
            if self._thread is None:
                self._thread = BackgroundThread(self._run, name="group-commits", stop=self._stop)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout_s: float = FLUSH_S) -> bool:
        """Wait until all is committed, or has failed; return whether that was in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._next is None and not self._is_busy, timeout_s)

    def close(self) -> None:
        """Wait for the last commit, and end the thread."""
        self.flush()
        self._stop()

    def _stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next is not None or self._is_stopped)
                offsets, self._next = self._next, None
                if offsets is None:
                    return
                self._is_busy = True
            has_failed = False
            try:
                self._commit(self._group, offsets)
            except ClientError as error:
                logger.warning("group %s: the query's offsets were not committed: %s", self._group, error)
                has_failed = True
            finally:
                with self._changed:
                    self._is_busy = False
                    if has_failed and self._last == offsets:
                        # Accept the same offsets again: Spark repeats the position of an idle query.
                        self._last = None
                    self._changed.notify_all()
