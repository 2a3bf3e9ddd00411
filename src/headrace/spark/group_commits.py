"""Offsets that a query commits for a consumer group, so that tools show its lag.

The query's position is in its checkpoint. A thread commits the newest offsets, so that no batch waits for it.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from headrace.client.errors import ClientError
from headrace.tables.reader.offsets import Offsets

FLUSH_S: Final = 3.0

logger = logging.getLogger(__name__)


class GroupCommits:
    """Commits offsets in the background, the newest only: offsets that were not sent yet are replaced."""

    def __init__(self, group: str, commit: Callable[[str, Offsets], None]) -> None:
        """`commit` sends a request and waits for its response; it raises ClientError."""
        self._group = group
        self._commit = commit
        self._last: Offsets | None = None  # handed in last
        self._pending: list[Future[None]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="group-commits")

    def submit(self, offsets: Offsets) -> None:
        """Commit these offsets soon, unless they were the last ones, too."""
        if offsets != self._last:
            self._last = offsets
            self._pending = [self._thread.submit(self._send, offsets)]

    def _send(self, offsets: Offsets) -> None:
        if offsets is not self._last:
            return  # newer ones follow
        try:
            self._commit(self._group, offsets)
        except ClientError as error:
            logger.warning("group %s: the query's offsets were not committed: %s", self._group, error)
            if self._last is offsets:
                self._last = None  # accept the same ones again: Spark repeats the position of an idle query

    def flush(self, timeout_s: float = FLUSH_S) -> bool:
        """Wait until all is committed, or has failed; return whether that was in time."""
        return not wait(self._pending, timeout_s).not_done

    def close(self) -> None:
        """Wait for the last commit, and end the thread."""
        self.flush()
        self._thread.shutdown(wait=False, cancel_futures=True)
