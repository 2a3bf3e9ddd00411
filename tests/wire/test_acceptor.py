"""The server without TLS by itself: a burst of connections is accepted in small portions."""

import asyncio
import socket
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import cast

from headrace.system.acceptor import PER_ITERATION, PlainServer, bind_all
from headrace.system.event_loop import loop_factory

CLIENTS = 50
WAIT_S = 20.0


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


def run(story: Coroutine[object, object, None]) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(story)


def test_a_burst_is_accepted_a_few_connections_at_a_time() -> None:
    accepted: list[int] = []

    class Counting(PlainServer):
        def _accept(self, listening: socket.socket) -> None:
            accepted.append(0)
            super()._accept(listening)

        def _accepted(self, connection: socket.socket) -> None:
            accepted[-1] += 1
            super()._accepted(connection)

    async def story() -> None:
        server = Counting(await bind_all("127.0.0.1", 0), Echo)
        await server.start_serving()
        address = server.sockets[0].getsockname()
        with ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection(address)) for _ in range(CLIENTS)]
            for client in clients:
                client.setblocking(False)
                client.send(b"hello")
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(WAIT_S):
                received = await asyncio.gather(*(loop.sock_recv(client, 5) for client in clients))
        server.close()
        assert received == [b"hello"] * CLIENTS
        assert sum(accepted) == CLIENTS
        assert max(accepted) <= PER_ITERATION

    run(story())


def test_a_client_that_is_gone_before_it_is_accepted_does_no_harm() -> None:
    async def story() -> None:
        server = PlainServer(await bind_all("127.0.0.1", 0), Echo)
        await server.start_serving()
        address = server.sockets[0].getsockname()
        gone = socket.create_connection(address)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        gone.close()
        async with asyncio.timeout(WAIT_S):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"here")
            assert await reader.readexactly(4) == b"here"
            writer.close()
        server.close()

    run(story())
