"""A gateway on demand: its socket listens from the start, and the first connection starts the gateway.

Until then the gateway costs neither time at the start nor memory; connections wait in the socket's backlog.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.process import ProcessEnded, Service
from headrace.cli.machine.supervisor import Backoff
from headrace.cli.support.process import CommandFailed
from headrace.client.properties import InvalidProperties, parse_properties
from headrace.gateway.listening import (
    ALLOW_PLAINTEXT,
    ALLOW_UNAUTHENTICATED,
    Exposed,
    bound,
    check_exposure,
    url_of,
)
from headrace.system.addresses import reachable, written
from headrace.system.extras import HTTP, require

USUAL_PORT: Final = 8080
HOSTS: Final = "http.hosts"

logger = logging.getLogger("headrace")


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """How a gateway serves HTTP and connects to its brokers; `properties` may contain passwords."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    client_config: str = ""  # a properties file of a Kafka client; empty: PLAINTEXT

    @classmethod
    def of(cls, config: BrokerConfig) -> "GatewayOptions":
        """Return what the settings of a broker say; CommandFailed if a file cannot be read."""
        properties = _read(config.text("http.config"))
        hosts = config.items("http.hosts")
        if hosts:
            properties[HOSTS] = ",".join(hosts)
        if config.flag(ALLOW_UNAUTHENTICATED):
            properties[ALLOW_UNAUTHENTICATED] = "true"
        return cls(properties, config.text("http.client.config"))

    @property
    def uses_tls(self) -> bool:
        return any(name.startswith("ssl.keystore.") for name in self.properties)

    def check(self, host: str) -> None:
        """Raise CommandFailed if the gateway must not listen on `host`, before anything has started."""
        protocol = _read(self.client_config).get("security.protocol", "PLAINTEXT").strip().upper()
        try:
            check_exposure(
                host,
                protocol,
                tls=self.uses_tls,
                allow_unauthenticated=self._flag(ALLOW_UNAUTHENTICATED),
                allow_plaintext=self._flag(ALLOW_PLAINTEXT),
            )
        except Exposed as error:
            raise CommandFailed(str(error)) from error

    def _flag(self, name: str) -> bool:
        return self.properties.get(name, "").strip().lower() == "true"


def _read(path: str) -> dict[str, str]:
    """Return the properties in a file, none if there is no path; CommandFailed if it cannot be read."""
    if not path:
        return {}
    try:
        return parse_properties(Path(path).read_text("utf-8"), path)
    except (OSError, UnicodeDecodeError, InvalidProperties) as error:
        raise CommandFailed(f"{path} cannot be read: {error}") from error


def http_socket(config: BrokerConfig) -> contextlib.AbstractContextManager[socket.socket | None]:
    """Return a socket for http.listener, or None if it is not set."""
    address = config.text("http.listener")
    if not address:
        return contextlib.nullcontext()
    require(HTTP, f"http.listener={address}")
    host, port = endpoint(address, "http.listener")
    GatewayOptions.of(config).check(host)
    return listening(host, port)


ADVERTISED: Final = "http.advertised.url"


def advertised(config: BrokerConfig, held: socket.socket | None, *, tls: bool) -> BrokerConfig:
    """Return the settings of a broker with the URL at which clients find the gateway, unless it is set.

    For a gateway on all interfaces that is the host of the broker's first listener for clients.
    """
    if held is None or config.text(ADVERTISED):
        return config
    host, port = held.getsockname()[:2]
    if reachable(host) != host:  # on all interfaces
        endpoints = config.advertised or config.listeners
        host = next((endpoint.host for endpoint in endpoints if endpoint.host), host)
    url = f"{'https' if tls else 'http'}://{written(reachable(host), port)}"
    return BrokerConfig.of({**config.given, ADVERTISED: url})


class _Gateway(Service):
    stop_s = 3.0  # it exits earlier by itself, and has no state that a kill could harm


@contextlib.asynccontextmanager
async def on_demand(
    held: socket.socket | None,
    bootstrap: str,
    *,
    log: Path | None,
    holds: Sequence[int] = (),
    options: GatewayOptions | None = None,
) -> AsyncIterator[dict[str, str]]:
    """Start a gateway at the first connection to the socket, and again after it has died.

    Yield the addresses of the ready line: `bootstrap`, and `http` unless the socket is None. The gateway is
    stopped at the end. `log` and `holds` are as for any member.
    """
    addresses = {"bootstrap": bootstrap}
    if held is None:
        yield addresses
        return
    options = options or GatewayOptions()
    options.check(held.getsockname()[0])
    settings = {
        "bootstrap": bootstrap,
        "listening": held.fileno(),
        "properties": dict(options.properties),
        "client_config": options.client_config,
    }
    gateway = _Gateway("gateway", log, [held.fileno(), *holds], service="gateway", settings=settings)
    keeping = asyncio.ensure_future(_keep(gateway, held))
    keeping.add_done_callback(_log_failure)
    try:
        yield addresses | {"http": url_of(held, tls=options.uses_tls)}
    finally:
        keeping.cancel()
        await gateway.stop()


async def _keep(gateway: Service, held: socket.socket) -> None:
    backoff = Backoff()
    loop = asyncio.get_running_loop()
    while True:
        connection = asyncio.Event()  # in the socket's backlog
        loop.add_reader(held, connection.set)
        try:
            await connection.wait()
        finally:
            loop.remove_reader(held)
        try:
            await gateway.start()
            ended = await gateway.ended()
        except ProcessEnded as never_ready:
            ended = never_ready
        delay = backoff.after(ended.lived_s)
        logger.error("%s; the next connection starts it again", ended)
        await asyncio.sleep(delay)


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
    held = None
    if port is None and USUAL_PORT not in reserved:
        with contextlib.suppress(OSError):
            held = bound(host, USUAL_PORT)
    if held is None:
        try:
            held = bound(host, port or 0)
        except OSError as error:
            why = error.strerror or str(error)
            raise CommandFailed(
                f"cannot serve HTTP on {host}:{port or 0}: {why[:1].lower()}{why[1:]}; choose another port"
            ) from error
        if port is None:
            logger.info("port %d is in use: HTTP is served on port %d", USUAL_PORT, held.getsockname()[1])
    with held:
        yield held
