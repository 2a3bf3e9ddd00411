"""File descriptors: the limit is raised to what the system allows, and is shared by logs and connections."""

import logging
import resource
import sys
from typing import Final

PER_LOG: Final = 3  # the active segment, and segments that are being read
RESERVED: Final = 200  # for listeners, ZooKeeper, checkpoints and other files that are open for a moment
MAX_FOR_LOGS: Final = 20_000  # an open file costs about a kilobyte of the kernel's memory
_MIN_FOR_LOGS: Final = 32
_MOST_ON_MACOS: Final = 10_240  # OPEN_MAX; the hard limit is reported as unlimited, and cannot be set

logger = logging.getLogger(__name__)


def raise_limit() -> None:
    """Raise the soft limit on open files to the hard limit, which needs no privilege."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_ON_MACOS if sys.platform == "darwin" and hard == resource.RLIM_INFINITY else hard
    if soft in {wanted, hard}:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        logger.warning("the limit on open files stays at %d: %s", soft, error)
    else:
        logger.debug("the limit on open files is raised from %d to %d", soft, wanted)


def room_for_logs() -> int:
    """Return how many files of segments may be open at a time: half of the limit is for connections."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MAX_FOR_LOGS
    return max(_MIN_FOR_LOGS, min(limit // 2 - RESERVED, MAX_FOR_LOGS))


def room_for_connections(logs: int) -> int:
    """Return how many connections a broker with this many logs may accept: at least half of the limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(limit // 2, limit - min(PER_LOG * logs, room_for_logs()) - RESERVED)
