"""A gateway on demand: its socket listens from the start, and the first connection starts the gateway.

Until then the gateway costs neither time at the start nor memory; connections wait in the socket's backlog.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from headrace.cli.machine.process import ProcessEnded, Service
from headrace.cli.machine.supervisor import Backoff
from headrace.cli.process import CommandFailed
from headrace.http.sockets import bound, url_of

USUAL_PORT: Final = 8080

logger = logging.getLogger("headrace")


class _Gateway(Service):
    stop_s = 3.0  # it exits earlier by itself, and has no state that a kill could harm


@contextlib.asynccontextmanager
async def on_demand(
    held: socket.socket | None,
    bootstrap: str,
    *,
    log: Path | None,
    holds: Sequence[int] = (),
    hosts: Collection[str] = (),
) -> AsyncIterator[dict[str, str]]:
    """Start a gateway at the first connection to the socket, and again after it has died.

    Yield the addresses of the ready line: `bootstrap`, and `http` unless the socket is None. The gateway is
    stopped at the end. `log` and `holds` are as for any member.
    """
    addresses = {"bootstrap": bootstrap}
    if held is None:
        yield addresses
        return
    settings = {"bootstrap": bootstrap, "listening": held.fileno(), "hosts": list(hosts)}
    gateway = _Gateway("gateway", log, [held.fileno(), *holds], service="gateway", settings=settings)
    keeping = asyncio.ensure_future(_keep(gateway, held))
    keeping.add_done_callback(_log_failure)
    try:
        yield addresses | {"http": url_of(held)}
    finally:
        keeping.cancel()
        await gateway.stop()


async def _keep(gateway: Service, held: socket.socket) -> None:
    backoff = Backoff()
    while True:
        await _connection(held)
        try:
            await gateway.start()
            ended = await gateway.ended()
        except ProcessEnded as never_ready:
            ended = never_ready
        delay = backoff.after(ended.lived_s)
        logger.error("%s; the next connection starts it again", ended)
        await asyncio.sleep(delay)


async def _connection(held: socket.socket) -> None:
    """Wait until a connection is in the socket's backlog."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(held, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(held)


def _log_failure(keeping: asyncio.Future[None]) -> None:
    if not keeping.cancelled():
        logger.error("the gateway is not started any more", exc_info=keeping.exception())


def endpoint(address: str, what: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; CommandFailed if `address` has another form."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise CommandFailed(f"{what} is {address!r}: expected HOST:PORT")
    return host.strip("[]"), int(port)


@contextlib.contextmanager
def listening(host: str, port: int | None, reserved: Collection[int] = ()) -> Iterator[socket.socket]:
    """Yield a socket for HTTP at `port`; None is the usual port, or a free one if that is in use.

    `reserved` are ports that brokers are about to listen on.
    """
    with _at_usual(host, reserved) if port is None else _at(host, port) as held:
        yield held


def _at(host: str, port: int) -> socket.socket:
    try:
        return bound(host, port)
    except OSError as error:
        why = error.strerror or str(error)
        raise CommandFailed(
            f"cannot serve HTTP on {host}:{port}: {why[:1].lower()}{why[1:]}; choose another port"
        ) from error


def _at_usual(host: str, reserved: Collection[int]) -> socket.socket:
    if USUAL_PORT not in reserved:
        with contextlib.suppress(OSError):
            return bound(host, USUAL_PORT)
    held = _at(host, 0)
    logger.info("port %d is in use: HTTP is served on port %d", USUAL_PORT, held.getsockname()[1])
    return held
