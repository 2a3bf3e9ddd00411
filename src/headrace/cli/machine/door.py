"""The gateway's door: its socket listens from the start, and the first that knocks has the gateway started.

Until then it costs nothing, neither time at the start nor memory; connections wait in the socket meanwhile.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import Final

from headrace.cli.machine.process import Ended, Service
from headrace.cli.machine.supervisor import Backoff
from headrace.cli.process import Refused
from headrace.http.sockets import bound, url_of

USUAL_PORT: Final = 8080

logger = logging.getLogger("headrace")


class _Gateway(Service):
    stop_s = 3.0  # it leaves before, and keeps nothing that a kill could harm


class Door:
    """A gateway that is not there until it is wanted, and wanted again after it has died."""

    def __init__(
        self,
        listening: socket.socket,
        bootstrap: str,
        *,
        log: Path | None,
        holds: int | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        """`log` and `holds` are as for any member; `bootstrap` and `hosts` are the gateway's settings."""
        self.url = url_of(listening)
        self._socket = listening
        inherited = [listening.fileno(), *([] if holds is None else [holds])]
        self._gateway = _Gateway(
            "gateway",
            log,
            inherited,
            module="headrace.cli.machine.gateway",
            settings={"bootstrap": bootstrap, "listening": listening.fileno(), "hosts": list(hosts)},
        )

    async def keep(self) -> None:
        """Start it whenever somebody knocks, for ever."""
        backoff = Backoff()
        while True:
            await self._knock()
            try:
                await self._gateway.start()
                ended = await self._gateway.ended()
            except Ended as never_ready:
                ended = never_ready
            delay = backoff.after(ended.lived_s)
            logger.error("%s; it is started again when somebody asks for it", ended)
            await asyncio.sleep(delay)

    async def stop(self) -> None:
        """Stop it, if it runs."""
        await self._gateway.stop()

    async def _knock(self) -> None:
        loop = asyncio.get_running_loop()
        knocked = loop.create_future()

        def knock() -> None:
            if not knocked.done():
                knocked.set_result(None)

        loop.add_reader(self._socket, knock)
        try:
            await knocked
        finally:
            loop.remove_reader(self._socket)


@contextlib.asynccontextmanager
async def kept(door: Door) -> AsyncIterator[Door]:
    """Answer the door while the block runs."""
    keeping = asyncio.ensure_future(door.keep())
    keeping.add_done_callback(_say_why)
    try:
        yield door
    finally:
        keeping.cancel()
        await door.stop()


def _say_why(keeping: asyncio.Future[None]) -> None:
    """Log what nobody else hears of: that the door is not answered any more."""
    if not keeping.cancelled():
        logger.error("nobody answers the gateway's door any more", exc_info=keeping.exception())


def endpoint(address: str, what: str) -> tuple[str, int]:
    """HOST:PORT in two; Refused if it is not that."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise Refused(f"{what} is {address!r}: expected HOST:PORT")
    return host.strip("[]"), int(port)


@contextlib.contextmanager
def listening(host: str, port: int | None, leaving: Collection[int] = ()) -> Iterator[socket.socket]:
    """A socket for HTTP at `port`; None: the usual one, or any other if something listens there.

    `leaving` are ports that are about to be somebody else's.
    """
    with _at_usual(host, leaving) if port is None else _at(host, port) as held:
        yield held


def _at(host: str, port: int) -> socket.socket:
    try:
        return bound(host, port)
    except OSError as error:
        why = error.strerror or str(error)
        raise Refused(
            f"cannot serve HTTP on {host}:{port}: {why[:1].lower()}{why[1:]}; choose another port"
        ) from error


def _at_usual(host: str, leaving: Collection[int]) -> socket.socket:
    if USUAL_PORT not in leaving:
        with contextlib.suppress(OSError):
            return bound(host, USUAL_PORT)
    held = _at(host, 0)
    logger.info("port %d is in use: HTTP is served on port %d", USUAL_PORT, held.getsockname()[1])
    return held
