"""File descriptors: as many as the system allows, and enough of them kept from clients for the logs."""

import logging
import resource
import sys

PER_LOG = 3  # its active segment, and some that are read
RESERVED = 200  # for listeners, the coordinator, checkpoints and whatever else is open for a moment

logger = logging.getLogger(__name__)


def raise_limit() -> None:
    """Let this process open as many files and sockets as it may without asking anybody."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        logger.warning("the limit of open files stays at %d: %s", soft, error)
    else:
        logger.debug("the limit of open files is %d, it was %d", hard, soft)


def room_for_connections(logs: int) -> int:
    """How many connections there may be beside so many logs.

    Half of the limit at least: a broker that has many logs, most of them idle, has to be reached, too.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(limit // 2, limit - PER_LOG * logs - RESERVED)
