"""File descriptors: the limit is raised to what the system allows, and logs come before connections."""

import logging
import resource
import sys

PER_LOG = 3  # the active segment, and segments that are being read
RESERVED = 200  # for listeners, ZooKeeper, checkpoints and other files that are open for a moment

logger = logging.getLogger(__name__)


def raise_limit() -> None:
    """Raise the soft limit on open files to the hard limit, which needs no privilege."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        logger.warning("the limit on open files stays at %d: %s", soft, error)
    else:
        logger.debug("the limit on open files is raised from %d to %d", soft, hard)


def room_for_connections(logs: int) -> int:
    """Return how many connections a broker with this many logs may accept.

    It is at least half of the limit: a broker with many logs, most of them idle, has to be reachable too.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(limit // 2, limit - PER_LOG * logs - RESERVED)
