"""Runs `headrace` with a probe on its event loop that says what requests have cost.

    python measured.py SOCKET python -m headrace up ...

The probe runs every millisecond and notes how much CPU time the loop's thread has used since the last time.
Whatever holds the loop keeps the probe from running, so the largest of these figures is the longest hold.
CPU time does not depend on how busy the machine is. Whatever is sent to the Unix socket SOCKET is answered
with the figures since the last time.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Final, cast

from headrace.cli.main import main
from headrace.cli.support import process
from headrace.system.event_loop import loop_factory

INTERVAL_S: Final = 0.001

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class Probe(asyncio.Protocol):
    """Measures one event loop from inside; one client at a time asks for the figures."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.WriteTransport | None = None
        self.server: asyncio.Server | None = None  # uvloop closes one that nobody holds
        self._reset()
        self._look()

    def _reset(self) -> None:
        self._longest_s = 0.0
        self._last_s = self._loop_began_s = time.thread_time()
        self._process_began_s = time.process_time()

    def _measure(self) -> None:
        now_s = time.thread_time()
        self._longest_s = max(self._longest_s, now_s - self._last_s)
        self._last_s = now_s

    def _look(self) -> None:
        self._measure()
        self._loop.call_later(INTERVAL_S, self._look)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, _data: bytes) -> None:
        assert self._transport is not None
        self._measure()
        figures = {
            "hold_s": self._longest_s,
            "loop_s": self._last_s - self._loop_began_s,
            "process_s": time.process_time() - self._process_began_s,
        }
        self._transport.write(json.dumps(figures).encode() + b"\n")
        self._reset()


def measured(make: LoopFactory, path: str) -> LoopFactory:
    """A loop factory whose loop answers at `path`."""

    def factory() -> asyncio.AbstractEventLoop:
        loop = make()
        probe = Probe(loop)
        probe.server = loop.run_until_complete(loop.create_unix_server(lambda: probe, path))
        return loop

    return factory


if __name__ == "__main__":
    path, command = sys.argv[1], sys.argv[2:]
    factory = measured(loop_factory(), path)
    setattr(process, "loop_factory", lambda: factory)  # noqa: B010  (mypy: it is not exported)
    sys.argv = command[command.index("headrace") :]
    main()
