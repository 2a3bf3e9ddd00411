"""The gateway as a server: on a socket that somebody has bound, until it is told to stop."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import uvicorn

from headrace.background import BackgroundThread
from headrace.http.app import create_app
from headrace.http.connections import Config
from headrace.http.patience import Patience
from headrace.http.settings import GatewaySettings
from headrace.http.sockets import bound, url_of

START_S: Final = 30.0
GRACE_S: Final = 2  # for answers that are on their way when it is told to stop
STOP_S: Final = GRACE_S + 0.5  # for all of it: a broker that hangs is not waited for


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the loop, and does not wait for those who only listen."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._app = create_app(settings)
        patient = Patience(self._app, settings.patience_s)
        super().__init__(
            Config(
                patient,
                settings,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Have `serve` return soon."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Have streams without an end come to one; the others are waited for."""
        if self._app.state.has("hub"):
            self._app.state.hub.end_streams()
        await super().shutdown(sockets)


async def serve(settings: GatewaySettings, listening: socket.socket) -> None:
    """Serve until it is cancelled; what is being answered then is answered."""
    server = _Server(settings)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.stop()
        await serving
        raise


@dataclass(frozen=True, slots=True)
class Served:
    """A gateway that runs; `url` is where."""

    url: str


@contextlib.contextmanager
def serve_in_thread(
    bootstrap: str, host: str = "127.0.0.1", port: int = 0, **limits: Any
) -> Iterator[Served]:
    """A gateway in this process, for tests and notebooks; `limits` are those of GatewaySettings."""
    from urllib.request import urlopen  # noqa: PLC0415  a gateway in a process of its own starts without

    with bound(host, port) as listening:
        server = _Server(GatewaySettings(bootstrap=bootstrap, **limits))
        thread = BackgroundThread(
            server.run,
            args=([listening],),
            name="headrace-gateway",
            stop=server.stop,
            daemon=False,  # or anyio's threads would be daemon threads, which nobody joins at exit
        )
        thread.start()
        try:
            served = Served(url_of(listening))
            # FastAPI finishes an app with its first request, and not for several threads at a time.
            urlopen(f"{served.url}/healthz", timeout=START_S).close()  # noqa: S310  our own
            yield served
        finally:
            server.stop()
            thread.join()
