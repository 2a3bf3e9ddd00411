"""Load on raw connections: a fixed number of requests in flight on each, from one thread with epoll.

Requests are ready-made bytes, so that on two cores the broker is what is measured and not the client.
"""

import select
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Final, NamedTuple, Protocol

from compare.wire import SIZE
from headrace.client.wire.connection import Address

GIVE_UP_S: Final = 60
SMALL: Final = 64 * 1024  # requests up to here are joined into one send
MAX_ANSWER: Final = 1024 * 1024 + 64 * 1024


WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Endpoint(NamedTuple):
    """Where a load goes to; with `tls`, connections begin with a handshake."""

    address: Address
    tls: ssl.SSLContext | None = None

    def connect(self) -> socket.socket:
        """Return a connected socket, after the handshake if there is one."""
        plain = socket.create_connection(self.address, GIVE_UP_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain if self.tls is None else self.tls.wrap_socket(plain, server_hostname=self.address.host)


class Source(Protocol):
    """Where one connection's requests come from."""

    def next(self) -> bytes: ...

    def answered(self, frame: memoryview) -> int:
        """The bytes of record data that this answer accounts for; an exception if it is an error."""


class Driven(NamedTuple):
    requests: int
    data_bytes: int
    seconds: float


class _Connection:
    def __init__(self, endpoint: Endpoint, source: Source, poll: select.epoll) -> None:
        self._source = source
        self._poll = poll
        self._socket = endpoint.connect()
        self._socket.setblocking(False)
        self._reads_records = endpoint.tls is not None
        self._unsent: list[memoryview] = []
        self._inbox = memoryview(bytearray(MAX_ANSWER))
        self._have = 0
        self.fileno: Final = self._socket.fileno()
        self.in_flight = 0
        self.requests = 0
        self.data_bytes = 0
        poll.register(self.fileno, select.EPOLLIN)

    def close(self) -> None:
        self._socket.close()

    def ask(self, count: int) -> None:
        """Put `count` more requests on their way."""
        if not count:
            return
        self.in_flight += count
        requests = [self._source.next() for _ in range(count)]
        if len(requests[0]) <= SMALL:
            requests = [b"".join(requests)]
        blocked = bool(self._unsent)
        self._unsent += map(memoryview, requests)
        if not blocked:
            self.send()

    def send(self) -> None:
        blocked = len(self._unsent) > 0
        while self._unsent:
            data = self._unsent[0]
            try:
                sent = self._socket.send(data)
            except WOULD_BLOCK:
                self._poll.modify(self.fileno, select.EPOLLIN | select.EPOLLOUT)
                return
            if sent < len(data):
                self._unsent[0] = data[sent:]
            else:
                self._unsent.pop(0)
        if blocked:
            self._poll.modify(self.fileno, select.EPOLLIN)

    def receive(self) -> int:
        """Take what has arrived; return how many answers it completed."""
        self._receive_bytes()
        start = answers = 0
        while self._have - start >= SIZE.size:
            stop = start + SIZE.size + SIZE.unpack_from(self._inbox, start)[0]
            if stop > self._have:
                break
            self.data_bytes += self._source.answered(self._inbox[start + SIZE.size : stop])
            answers += 1
            start = stop
        if start:
            left = self._have - start
            self._inbox[:left] = self._inbox[start : self._have]
            self._have = left
        self.in_flight -= answers
        self.requests += answers
        return answers

    def _receive_bytes(self) -> None:
        """Receive once, or with TLS until nothing is left: a call returns one record, of 16 KiB at most."""
        while self._have < len(self._inbox):
            try:
                count = self._socket.recv_into(self._inbox[self._have :])
            except WOULD_BLOCK:
                return
            if not count:
                raise ConnectionError("the broker closed the connection")
            self._have += count
            if not self._reads_records:
                return


def drive(
    endpoint: Endpoint,
    make_source: Callable[[int], Source],
    *,
    connections: int,
    depth: int,
    seconds: float,
    max_bytes: int,
) -> Driven:
    """Keep `depth` requests in flight on each connection for that long or that many bytes of data.

    Ends when everything asked has been answered, so that no work of the broker is left uncounted.
    """
    with select.epoll() as poll, ExitStack() as stack:
        opened = [
            stack.enter_context(closing(_Connection(endpoint, make_source(number), poll)))
            for number in range(connections)
        ]
        return _run(poll, opened, depth, seconds, max_bytes)


def _run(poll: select.epoll, opened: list[_Connection], depth: int, seconds: float, max_bytes: int) -> Driven:
    by_fileno = {connection.fileno: connection for connection in opened}
    share = max_bytes // len(opened)
    start = time.perf_counter()
    deadline = start + seconds
    for connection in opened:
        connection.ask(depth)
    while any(connection.in_flight for connection in opened):
        now = time.perf_counter()
        if now > deadline + GIVE_UP_S:
            raise TimeoutError(f"requests are unanswered after {GIVE_UP_S} s")
        for fileno, event in poll.poll(1):
            connection = by_fileno[fileno]
            if event & select.EPOLLOUT:
                connection.send()
            if event & ~select.EPOLLOUT:
                answers = connection.receive()
                if now < deadline and connection.data_bytes < share:
                    connection.ask(answers)
    elapsed = time.perf_counter() - start
    requests = sum(connection.requests for connection in opened)
    return Driven(requests, sum(connection.data_bytes for connection in opened), elapsed)
