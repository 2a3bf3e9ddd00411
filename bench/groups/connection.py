"""A member's connection to its coordinator: raw requests, and answers in the order of the requests."""

import asyncio
import time
from collections import deque
from typing import Any, Final, NamedTuple

from compare.wire import SIZE, VERSIONS, request
from headrace.client.wire.connection import Address
from headrace.protocol.api import ApiKey, response_class
from headrace.protocol.headers import decode_response_header
from headrace.protocol.message import Message

AT_ONCE: Final = 40  # connections that are being made at a time: Kafka's listen backlog is 50


class Answer(NamedTuple):
    message: Any
    seconds: float  # from the request's sending to the arrival of the answer's bytes


class Connection(asyncio.Protocol):
    """One socket. It notes when bytes arrive, so that a busy event loop does not count as latency."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._waiting: deque[asyncio.Future[tuple[bytes, float]]] = deque()
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # uvloop's is none of asyncio's classes

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        received = self._received
        received += data
        while len(received) >= SIZE.size:
            stop = SIZE.size + SIZE.unpack_from(received)[0]
            if stop > len(received):
                break
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result((bytes(received[SIZE.size : stop]), now))
            del received[:stop]

    def connection_lost(self, _error: Exception | None) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(ConnectionError("the broker closed the connection"))

    async def ask(self, key: ApiKey, body: Message) -> Answer:
        return await self.ask_again(key, request(key, body))

    async def ask_again(self, key: ApiKey, frame: bytes) -> Answer:
        """Send a request that was encoded before."""
        assert self._transport is not None
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        sent = time.perf_counter()
        self._transport.write(frame)
        answer, arrived = await waiting
        _, body = decode_response_header(key, VERSIONS[key], memoryview(answer))
        return Answer(response_class(key).decode(body, VERSIONS[key]), arrived - sent)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def connect(address: Address, count: int) -> list[Connection]:
    """So many connections, a few at a time."""
    loop = asyncio.get_running_loop()
    room = asyncio.Semaphore(AT_ONCE)

    async def one() -> Connection:
        async with room:
            return (await loop.create_connection(Connection, *address))[1]

    return list(await asyncio.gather(*(one() for _ in range(count))))
