"""The log of requests that were denied: who, from where, and what."""

import logging
import time
from collections.abc import Callable
from typing import Final

from headrace.security.authorization import Action
from headrace.security.principals import Principal
from headrace.system.line_limit import LineLimit

MAX_REMEMBERED: Final = 10_000
MAX_NAME: Final = 249  # characters of a resource name in the log; names of groups may be longer

logger = logging.getLogger("headrace.authorizer")

_Denial = tuple[Principal, str, Action]


class AuditLog:
    """Logs each denial once, and MAX_LINES in a second: hostile clients must not fill the disk.

    Denials are counted each time. What was logged is remembered up to a limit, then logged again.
    """

    def __init__(
        self, max_remembered: int = MAX_REMEMBERED, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.total = 0
        self._max_remembered = max_remembered
        self._limit = LineLimit(now_s)
        self._logged: set[_Denial] = set()

    def denied(self, principal: Principal, host: str, action: Action) -> None:
        """Count a denial, and log it unless it was logged before."""
        self.total += 1
        denial = principal, host, action._replace(resource_name=action.resource_name[:MAX_NAME])
        if denial in self._logged or not self._limit.has_room():
            return
        if len(self._logged) >= self._max_remembered:
            self._logged.clear()
        self._logged.add(denial)
        logger.info("%r from %s is denied %s", str(principal), host, denial[-1])
