"""What brokers log: an exception with its trace is a bug that was caught somewhere, and fails the story."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.coordination.errors import CoordinationError
from headrace.protocol.kafka_errors import NotController
from simulation.loop import SimLoop
from simulation.world import World

_EXPECTED = (CoordinationError, NotController)  # what ZooKeeper's absence and another controller cause
_logger = logging.getLogger("headrace")


class _Alarm(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.DEBUG if world.is_traced else logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        loop = asyncio._get_running_loop()
        if not isinstance(loop, SimLoop):
            return
        self._world.say(loop.process.name, "log: %s", record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, _EXPECTED):
            loop.process.fail(f"{record.getMessage()}: {error!r}")


@contextmanager
def heard(world: World) -> Iterator[None]:
    """Have what brokers log become part of the trace."""
    handler, level, propagate = _Alarm(world), _logger.level, _logger.propagate
    _logger.setLevel(handler.level)
    _logger.propagate = False
    _logger.addHandler(handler)
    try:
        yield
    finally:
        _logger.removeHandler(handler)
        _logger.propagate = propagate
        _logger.setLevel(level)
