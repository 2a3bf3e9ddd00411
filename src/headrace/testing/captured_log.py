"""The warnings of brokers in this process, kept apart from the log of the tests that use them."""

import logging
import threading
from collections import deque
from typing import Final

KEPT: Final = 1000  # lines; the oldest go first
FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"

_OURS: Final = "headrace"
_KAZOO: Final = "kazoo"  # has threads of its own, and logs every connection
_lock = threading.Lock()
_open: list["CapturedLog"] = []


class CapturedLog(logging.Handler):
    """Captures the warnings of all threads whose names begin with `threads`, from `open` to `close`.

    Other handlers, such as pytest's caplog, do not get these records.
    """

    def __init__(self, threads: str) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter(FORMAT))
        self._threads = threads
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._dropped = 0
        self.is_kept = True  # while it is False, records are dropped

    def open(self) -> None:
        with _lock:
            _open.append(self)
            for logger in _loggers():
                logger.addFilter(_capture)

    def close(self) -> None:
        """Stop capturing; the captured lines can still be read."""
        with _lock:
            if self in _open:
                _open.remove(self)
            if not _open:
                for logger in _loggers():
                    logger.removeFilter(_capture)
        super().close()

    def captures(self, record: logging.LogRecord) -> bool:
        return (record.threadName or "").startswith(self._threads)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, with its traceback if it has one."""
        if not self.is_kept:
            return
        if len(self._lines) == KEPT:
            self._dropped += 1
        self._lines.append(self.format(record))

    @property
    def count(self) -> int:
        """How many lines there have been, dropped ones included."""
        return self._dropped + len(self._lines)

    def since(self, count: int) -> list[str]:
        """Return all lines but the first `count`."""
        return list(self._lines)[max(0, count - self._dropped) :]


def _capture(record: logging.LogRecord) -> bool:
    """Capture a record of a broker, and return False; return True for a record that all handlers get."""
    for log in tuple(_open):
        if log.captures(record):
            if record.levelno >= log.level:
                log.handle(record)
            return False
    return record.levelno >= logging.WARNING or not record.name.startswith(_KAZOO)


def _loggers() -> list[logging.Logger]:
    """Return our loggers and kazoo's, all of them: the filter of a logger does not apply to its children."""
    known = logging.getLogger().manager.loggerDict.items()
    return [
        logger
        for name, logger in known
        if isinstance(logger, logging.Logger) and name.split(".")[0] in {_OURS, _KAZOO}
    ]
