"""How many TLS connections a broker accepts: each is new, resumes no session, and sends one ApiVersions."""

import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Final

from compare.drive import GIVE_UP_S, WOULD_BLOCK, Endpoint
from compare.servers import Server
from compare.table import Expected, Figures, Line
from compare.wire import SIZE, request
from headrace.protocol.api import ApiKey
from headrace.protocol.schema.api_versions import ApiVersionsRequest

CHUNK: Final = 64 * 1024


class Visit:
    """One connection, from connect to the whole response; `is_over` says when it has it."""

    def __init__(self, endpoint: Endpoint, frame: bytes) -> None:
        assert endpoint.tls is not None, endpoint
        plain = socket.socket()
        plain.setblocking(False)
        plain.connect_ex(endpoint.address)
        self.socket: Final = endpoint.tls.wrap_socket(
            plain, server_hostname=endpoint.address.host, do_handshake_on_connect=False
        )
        self._frame = frame
        self._received = b""
        self._steps: list[Callable[[], None]] = [self._shake_hands, self._send, self._receive]

    @property
    def is_over(self) -> bool:
        return not self._steps

    def go_on(self) -> int:
        """Do what can be done without waiting; return the event to wait for, 0 if the visit is over."""
        try:
            while self._steps:
                self._steps[0]()
                self._steps.pop(0)
        except ssl.SSLWantWriteError:
            return selectors.EVENT_WRITE
        except WOULD_BLOCK:
            return selectors.EVENT_READ
        return 0

    def _shake_hands(self) -> None:
        self.socket.do_handshake()

    def _send(self) -> None:
        sent = self.socket.send(self._frame)
        assert sent == len(self._frame), "a small request fits into the socket's buffer"

    def _receive(self) -> None:
        while len(self._received) < SIZE.size or len(self._received) < self._expected_bytes():
            chunk = self.socket.recv(CHUNK)
            if not chunk:
                raise ConnectionError("the broker closed the connection before its response")
            self._received += chunk

    def _expected_bytes(self) -> int:
        return SIZE.size + int(SIZE.unpack_from(self._received)[0])


def visit(endpoint: Endpoint, *, at_a_time: int, seconds: float) -> tuple[int, float]:
    """Keep so many new connections under way for that long; return how many were completed, and seconds."""
    frame = request(ApiKey.API_VERSIONS, ApiVersionsRequest())
    done = 0
    start = time.perf_counter()
    deadline = start + seconds
    with selectors.DefaultSelector() as selector:
        for _ in range(at_a_time):
            _begin(selector, Visit(endpoint, frame))
        while selector.get_map():
            if time.perf_counter() > deadline + GIVE_UP_S:
                raise TimeoutError(f"connections are not complete after {GIVE_UP_S} s")
            for key, _events in selector.select(1):
                if not _continue(selector, key.data):
                    done += 1
                    if time.perf_counter() < deadline:
                        _begin(selector, Visit(endpoint, frame))
    return done, time.perf_counter() - start


def _begin(selector: selectors.BaseSelector, new: Visit) -> None:
    selector.register(new.socket, selectors.EVENT_WRITE, new)  # writable: connected


def _continue(selector: selectors.BaseSelector, under_way: Visit) -> bool:
    """Return whether the visit goes on; otherwise its connection is closed."""
    events = under_way.go_on()
    if events:
        selector.modify(under_way.socket, events, under_way)
        return True
    selector.unregister(under_way.socket)
    under_way.socket.close()
    return False


def lines(seconds: float) -> Iterator[Line[Server]]:
    for at_a_time in (1, 8, 32):

        def run(server: Server, at_a_time: int = at_a_time) -> Figures:
            cpu = server.cpu_seconds()
            done, elapsed = visit(server.load, at_a_time=at_a_time, seconds=seconds)
            used = server.cpu_seconds() - cpu
            return {"handshakes/s": done / elapsed, "CPU ms/handshake": used / done * 1e3}

        yield Line(
            name=f"tls handshake and ApiVersions, {at_a_time} at a time",
            run=run,
            quick=at_a_time == 8,
            expected=[Expected(figure="handshakes/s"), Expected(figure="CPU ms/handshake")],
        )
