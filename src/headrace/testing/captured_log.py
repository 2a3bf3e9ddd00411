"""What brokers of this process complain of, kept apart from the log of the tests that use them."""

import logging
import threading
from collections import deque
from typing import Final

KEPT: Final = 1000  # lines; the oldest go first
FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"

_OURS: Final = "headrace"
_KAZOO: Final = "kazoo"  # has threads of its own, and tells of every connection
_lock = threading.Lock()
_open: list["CapturedLog"] = []


class CapturedLog(logging.Handler):
    """The warnings of all threads whose names begin with `threads`, from `open` to `close`.

    Whoever looks at all loggers meanwhile, as pytest's caplog does, is told of everything but those.
    """

    def __init__(self, threads: str) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter(FORMAT))
        self._threads = threads
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._dropped = 0
        self.is_kept = True  # while it is not, what is heard is forgotten

    def open(self) -> None:
        with _lock:
            _open.append(self)
            for logger in _loggers():
                logger.addFilter(_sort)

    def close(self) -> None:
        """Listen no more; what was heard can still be read."""
        with _lock:
            if self in _open:
                _open.remove(self)
            if not _open:
                for logger in _loggers():
                    logger.removeFilter(_sort)
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


def _sort(record: logging.LogRecord) -> bool:
    """Hand a record to the brokers it is of; whether it is nobody's, and goes where all others go."""
    for log in tuple(_open):
        if log.hears(record):
            if record.levelno >= log.level:
                log.handle(record)
            return False
    return record.levelno >= logging.WARNING or not record.name.startswith(_KAZOO)


def _loggers() -> list[logging.Logger]:
    """Ours and kazoo's, all of them: a logger's filter is not asked about what is said to those below it."""
    known = logging.getLogger().manager.loggerDict.items()
    return [
        logger
        for name, logger in known
        if isinstance(logger, logging.Logger) and name.split(".")[0] in {_OURS, _KAZOO}
    ]
