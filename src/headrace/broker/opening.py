"""How far a broker is with opening its logs, which may take minutes after a crash: a line now and then."""

import logging
import time
from typing import Final

EVERY_S: Final = 2.0

logger = logging.getLogger("headrace")


class OpeningLogs:
    """Called after every log; silent while it goes fast."""

    def __init__(self) -> None:
        self._began = self._said = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._said < EVERY_S and not (done == total and self._said > self._began):
            return
        self._said = now
        logger.info("opening logs: %d of %d, after %.0f s", done, total, now - self._began)
