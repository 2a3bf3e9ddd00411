"""Ports for servers of a test that must know theirs before they start, or find it again after a restart."""

import atexit
from contextlib import ExitStack

from headrace.system.ports import reserved

LOOPBACK = "127.0.0.1"

_kept = ExitStack()
atexit.register(_kept.close)


def free_port() -> int:
    """A port that stays nobody else's until this process ends."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    return _kept.enter_context(reserved(LOOPBACK, 0, count))
