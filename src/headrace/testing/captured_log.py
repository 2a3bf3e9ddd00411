"""What brokers of this process complain of, kept apart from the log of the tests that use them."""

import logging
import threading
from collections import deque
from typing import Final

KEPT: Final = 1000  # lines; the oldest go first
FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"

_OURS: Final = "headrace"
_lock = threading.Lock()
_open: list["CapturedLog"] = []
_propagated = True  # what the logger was told before the first of them


class CapturedLog(logging.Handler):
    """The warnings of all threads whose names begin with `threads`, from `open` to `close`.

    Whoever looks at the root logger meanwhile, as pytest's caplog does, is told of everything but those.
    """

    def __init__(self, threads: str) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter(FORMAT))
        self._threads = threads
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._dropped = 0
        self.is_kept = True  # while it is not, what is heard is forgotten

    def open(self) -> None:
        global _propagated
        logger = logging.getLogger(_OURS)
        with _lock:
            if not _open:
                _propagated, logger.propagate = logger.propagate, False
                logger.addHandler(_sorter)
            _open.append(self)

    def close(self) -> None:
        """Listen no more; what was heard can still be read."""
        logger = logging.getLogger(_OURS)
        with _lock:
            if self in _open:
                _open.remove(self)
                if not _open:
                    logger.propagate = _propagated
                    logger.removeHandler(_sorter)
        super().close()

    def hears(self, record: logging.LogRecord) -> bool:
        return (record.threadName or "").startswith(self._threads)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record, with its traceback if it has one."""
        if not self.is_kept:
            return
        if len(self._lines) == KEPT:
            self._dropped += 1
        self._lines.append(self.format(record))

    @property
    def count(self) -> int:
        """How many there have been, those that are not kept any more included."""
        return self._dropped + len(self._lines)

    def since(self, count: int) -> list[str]:
        """All but the first so many."""
        return list(self._lines)[max(0, count - self._dropped) :]


class _Sorter(logging.Handler):
    """Hands every record to the broker it is of, and what is nobody's to the root logger."""

    def emit(self, record: logging.LogRecord) -> None:
        for log in tuple(_open):
            if log.hears(record):
                if record.levelno >= log.level:
                    log.handle(record)
                return
        if _propagated:
            logging.getLogger().callHandlers(record)


_sorter = _Sorter()
