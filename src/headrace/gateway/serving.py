"""The gateway as a server on a socket that the caller has bound."""

import asyncio
import contextlib
import gc
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.request import urlopen

import uvicorn
from fastapi import FastAPI

from headrace.gateway.clusters import SeveralClusters
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.connections import Config
from headrace.gateway.listening import bound, url_of
from headrace.security.tls import ReloadingContext
from headrace.system.background import BackgroundThread

START_S: Final = 30.0
RELOAD_S: Final = 5.0  # between two looks at the files of certificates
GRACE_S: Final = 2  # for responses that are in progress at shutdown
STOP_S: Final = GRACE_S + 0.5  # for the whole shutdown, even if a broker hangs


class _Server(uvicorn.Server):
    """uvicorn without signal handlers, which ends tails and waiting reads at shutdown."""

    def __init__(self, apps: Mapping[str, FastAPI], settings: GatewaySettings) -> None:
        """`apps` are those of all clusters; the settings of the server are those of the first."""
        self._apps = apps
        self._tls = None if settings.tls is None else ReloadingContext.for_listener(settings.tls)
        self._reloading: asyncio.Task[None] | None = None
        super().__init__(
            Config(
                SeveralClusters(apps) if len(apps) > 1 else next(iter(apps.values())),
                settings,
                self._tls,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._tls is not None:
            self._reloading = asyncio.ensure_future(self._reload(self._tls))

    @staticmethod
    async def _reload(context: ReloadingContext) -> None:
        while True:
            await asyncio.sleep(RELOAD_S)
            await asyncio.to_thread(context.refresh)

    def stop(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        from headrace.gateway.app import end_streams  # noqa: PLC0415  as below

        if self._reloading is not None:
            self._reloading.cancel()
        for app in self._apps.values():
            end_streams(app)
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # its client does not answer the end of TLS
        await asyncio.sleep(0)


async def serve(settings: GatewaySettings | Mapping[str, GatewaySettings], listening: socket.socket) -> None:
    """Serve a cluster, or several by their names, until cancelled; finish the responses in progress."""
    gc.disable()  # the first request waits for these imports
    from headrace.gateway.app import create_app  # noqa: PLC0415

    named = {"": settings} if isinstance(settings, GatewaySettings) else settings
    first = next(iter(named.values()))
    server = _Server({name: create_app(each) for name, each in named.items()}, first)
    gc.freeze()  # modules and routes stay for good: later collections need not look at them
    gc.enable()
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.stop()
        await serving
        raise


@dataclass(frozen=True, slots=True)
class Served:
    url: str


@contextlib.contextmanager
def serve_in_thread(
    bootstrap: str | Mapping[str, str], host: str = "127.0.0.1", port: int = 0, **limits: Any
) -> Iterator[Served]:
    """Run a gateway in this process, for tests and notebooks; `limits` are fields of GatewaySettings.

    Bootstrap servers by name are those of several clusters.
    """
    from headrace.gateway.app import create_app, resolve_routes  # noqa: PLC0415  as above

    with bound(host, port) as listening:
        named = {"": bootstrap} if isinstance(bootstrap, str) else bootstrap
        every = {name: GatewaySettings(bootstrap=each, **limits) for name, each in named.items()}
        apps = {name: create_app(each) for name, each in every.items()}
        for app in apps.values():
            resolve_routes(app)
        settings = next(iter(every.values()))
        server = _Server(apps, settings)
        thread = BackgroundThread(
            server.run,
            args=([listening],),
            name="headrace-gateway",
            stop=server.stop,
            daemon=False,  # or anyio's threads would be daemon threads, which nobody joins at exit
        )
        thread.start()
        try:
            served = Served(url_of(listening, tls=settings.tls is not None))
            if settings.tls is None:
                urlopen(f"{served.url}/healthz", timeout=START_S).close()  # noqa: S310  our own
            else:  # a client might need a certificate
                deadline_s = time.monotonic() + START_S
                while not server.started:
                    if time.monotonic() > deadline_s:
                        raise TimeoutError(f"the gateway has not started within {START_S:g} s")
                    time.sleep(0.01)
            yield served
        finally:
            server.stop()
            thread.join()
