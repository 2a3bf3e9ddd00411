"""The last commit of a consumer, which nobody waits for any longer than a few seconds.

librdkafka has no limit of its own for it: with all brokers gone a commit lasts for the session's timeout, and
closing a client with something left to commit as long again.
"""

from collections.abc import Callable
from threading import Lock

from headrace.background import BackgroundThread


class LastCommit:
    """In a thread of its own. Whoever has waited enough leaves it there, with the client to be closed."""

    def __init__(self, commit: Callable[[], object], close: Callable[[], object]) -> None:
        self.left = False
        self._commit, self._close = commit, close
        self._error: Exception | None = None
        self._over = False
        self._lock = Lock()
        self._thread = BackgroundThread(self._run, name="headrace-commit", stop=None)

    def run(self, timeout_s: float) -> bool:
        """Commit, and close; False if that was not over in time, and is left behind."""
        self._thread.start()
        try:
            self._thread.join(timeout_s)
        finally:  # also at Ctrl-C
            with self._lock:
                self.left = not self._over
            if not self.left:
                self._close()
        if self._error is not None:
            raise self._error
        return not self.left

    def _run(self) -> None:
        try:
            self._commit()
        except Exception as error:  # noqa: BLE001  it is raised by whoever waits
            self._error = error
        with self._lock:
            self._over = True
        if self.left:
            self._close()
