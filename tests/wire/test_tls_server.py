"""The TLS server by itself: handshakes in small portions, and clients that never complete one."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.security.tls import ReloadingContext, TlsSettings
from headrace.system import tls_server
from headrace.system.acceptor import bind_all
from headrace.system.event_loop import loop_factory
from headrace.system.tls_server import PER_ITERATION, TlsServer
from support.certificates import Authority

CLIENTS = 40
WAIT_S = 20.0


class CountingContext(ReloadingContext):
    """Notes the number of the loop iteration in which each handshake begins."""

    began: list[int]
    iteration: Callable[[], int]

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        self.began.append(self.iteration())
        return super().wrap_bio(*args, **kwargs)


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


@pytest.fixture
def authority() -> Authority:
    return Authority("tls server")


@pytest.fixture
def context(tmp_path: Path, authority: Authority) -> CountingContext:
    made = authority.certify("server", ("127.0.0.1",))
    path = tmp_path / "server.pem"
    path.write_text(made.key + made.certificate)
    found = CountingContext.for_listener(TlsSettings.of({"ssl.keystore.location": str(path)}))
    assert isinstance(found, CountingContext)
    found.began, found.iteration = [], lambda: 0
    return found


async def listening(context: ssl.SSLContext) -> tuple[TlsServer, tuple[str, int]]:
    server = TlsServer(await bind_all("127.0.0.1", 0), Echo, context)
    await server.start_serving()
    host, port = server.sockets[0].getsockname()
    return server, (host, port)


def client_context(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.certificate)
    return context


def hello(context: ssl.SSLContext) -> bytes:
    out = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="127.0.0.1").do_handshake()
    return out.read()


async def closed(client: socket.socket) -> bytes:
    """What a client reads until the server closes the connection."""
    loop, data = asyncio.get_running_loop(), b""
    with suppress(ConnectionResetError):
        async with asyncio.timeout(WAIT_S):
            while chunk := await loop.sock_recv(client, 65536):
                data += chunk
    client.close()
    return data


def connect(address: tuple[str, int]) -> socket.socket:
    client = socket.create_connection(address)
    client.setblocking(False)
    return client


def test_a_burst_of_handshakes_is_spread_over_iterations_of_the_loop(
    context: CountingContext, authority: Authority
) -> None:
    iterations = 0

    async def story() -> list[bytes]:
        loop = asyncio.get_running_loop()

        def tick() -> None:
            nonlocal iterations
            iterations += 1
            loop.call_soon(tick)

        tick()
        context.iteration = lambda: iterations
        server, address = await listening(context)
        clients = [connect(address) for _ in range(CLIENTS)]
        first = hello(client_context(authority))
        for client in clients:
            await loop.sock_sendall(client, first)
        async with asyncio.timeout(WAIT_S):
            answers = [await loop.sock_recv(client, 5) for client in clients]
        server.close()
        for client in clients:
            client.close()
        return answers

    answers = asyncio.run(story())
    assert [answer[0] for answer in answers] == [22] * CLIENTS  # each got a ServerHello
    assert max(context.began.count(each) for each in context.began) <= PER_ITERATION
    assert len(context.began) == CLIENTS


def test_clients_talk_once_their_handshake_is_complete(
    context: CountingContext, authority: Authority
) -> None:
    async def story() -> list[bytes]:
        server, (host, port) = await listening(context)
        trusted = client_context(authority)

        async def talk(number: int) -> bytes:
            reader, writer = await asyncio.open_connection(host, port, ssl=trusted)
            writer.write(b"%04d" % number)
            answer = await reader.readexactly(4)
            writer.close()
            return answer

        try:
            return await asyncio.gather(*(talk(number) for number in range(20)))
        finally:
            server.close()

    assert asyncio.run(story()) == [b"%04d" % number for number in range(20)]


def test_a_first_message_in_pieces(context: CountingContext, authority: Authority) -> None:
    async def story() -> bytes:
        server, address = await listening(context)
        client, loop = connect(address), asyncio.get_running_loop()
        message = hello(client_context(authority))
        await loop.sock_sendall(client, message[:3])
        await asyncio.sleep(0)
        await loop.sock_sendall(client, message[3:50])
        await asyncio.sleep(0.01)
        assert context.began == []  # OpenSSL has not seen it yet
        await loop.sock_sendall(client, message[50:])
        async with asyncio.timeout(WAIT_S):
            answer = await loop.sock_recv(client, 5)
        server.close()
        client.close()
        return answer

    assert asyncio.run(story())[0] == 22


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x40\x00" + bytes(100)])
def test_a_client_that_never_completes_its_first_message_is_disconnected(
    context: CountingContext, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(tls_server, "HANDSHAKE_TIMEOUT_S", 0.3)

    async def story() -> None:
        server, address = await listening(context)
        client = connect(address)
        await asyncio.get_running_loop().sock_sendall(client, sent)
        assert await closed(client) == b""
        assert server.failures == 1
        server.close()

    asyncio.run(story())
    assert context.began == []


def test_bytes_that_are_no_tls_are_refused(context: CountingContext) -> None:
    async def story() -> None:
        server, address = await listening(context)
        client = connect(address)
        await asyncio.get_running_loop().sock_sendall(client, b"GET / HTTP/1.1\r\n\r\n")
        await closed(client)
        async with asyncio.timeout(WAIT_S):
            while server.failures != 1:  # noqa: ASYNC110  there is no event
                await asyncio.sleep(0.01)
        server.close()

    asyncio.run(story())


def test_of_too_many_silent_clients_the_oldest_is_disconnected(
    context: CountingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_server, "MAX_WAITING", 3)

    async def story() -> None:
        server, address = await listening(context)
        clients = [connect(address) for _ in range(4)]
        assert await closed(clients[0]) == b""
        assert server.failures == 1
        server.close()
        for client in clients[1:]:
            assert await closed(client) == b""  # the server has stopped

    asyncio.run(story())


def test_a_port_in_use_is_an_error_and_leaves_no_socket_open() -> None:
    async def story() -> None:
        (first,) = await bind_all("127.0.0.1", 0)
        first.listen()
        with pytest.raises(OSError, match="in use"):
            await bind_all("127.0.0.1", first.getsockname()[1])
        first.close()

    asyncio.run(story())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, loop_factory()], ids=["asyncio", "uvloop"])
def test_a_client_is_told_why_its_certificate_is_refused(
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    server_file, trusted = tmp_path / "server.pem", tmp_path / "trusted.pem"
    made = authority.certify("server", ("127.0.0.1",))
    server_file.write_text(made.key + made.certificate)
    trusted.write_text(authority.certificate)
    settings = {
        "ssl.keystore.location": str(server_file),
        "ssl.truststore.location": str(trusted),
        "ssl.client.auth": "required",
    }
    expired = authority.certify("client", ended=timedelta(days=1))
    own = tmp_path / "client.pem"
    own.write_text(expired.key + expired.certificate)
    trusting = client_context(authority)
    trusting.load_cert_chain(own)

    def talk(address: tuple[str, int]) -> None:
        with (
            socket.create_connection(address, WAIT_S) as plain,
            trusting.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
        ):
            secured.recv(1)  # with TLS 1.3 the client learns of it after its part of the handshake

    async def story() -> None:
        server, address = await listening(ReloadingContext.for_listener(TlsSettings.of(settings)))
        with pytest.raises(ssl.SSLError, match=r"(?i)certificate expired"):
            await asyncio.to_thread(talk, address)
        async with asyncio.timeout(WAIT_S):
            while not server.failures:  # noqa: ASYNC110  there is no event
                await asyncio.sleep(0.01)
        server.close()

    caplog.set_level("INFO")
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())
    assert "the client's certificate is refused: certificate has expired" in caplog.text
