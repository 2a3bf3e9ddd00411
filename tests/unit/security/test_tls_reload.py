"""Certificates that change while a server listens, with asyncio's event loop and with uvloop's."""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from headrace.security.tls import ReloadingContext, TlsSettings
from support.certificates import Authority
from support.handshakes import exchange, handshake

AUTHORITY, NEXT_AUTHORITY = Authority("authority"), Authority("next")
PASSWORD = "secret"


class Files:
    """The keystore and the truststore of a broker."""

    def __init__(self, directory: Path) -> None:
        self.keystore, self.truststore = directory / "keystore.p12", directory / "truststore.pem"
        self.certify("first")
        self.trust(AUTHORITY)

    def certify(self, name: str, *, by: Authority = AUTHORITY) -> bytes:
        """Replace the keystore by one with another certificate; return the keystore's bytes."""
        new = by.certify(name, ["localhost"])
        data = pkcs12.serialize_key_and_certificates(
            b"broker", new.private, new.signed, None, BestAvailableEncryption(PASSWORD.encode())
        )
        replace(self.keystore, data)
        return data

    def trust(self, authority: Authority) -> None:
        replace(self.truststore, authority.certificate.encode())

    def settings(self, **more: str) -> TlsSettings:
        given = {
            "ssl.keystore.location": str(self.keystore),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.location": str(self.truststore),
        }
        return TlsSettings.of(given | {name.replace("_", "."): value for name, value in more.items()})


def replace(path: Path, data: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(data)
    new.replace(path)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=AUTHORITY.certificate)
    context.check_hostname = False
    return context


def presented(context: ssl.SSLContext, *, host: str | None = "localhost") -> str:
    """Return the name in the certificate that a new connection gets."""
    _, client = handshake(context, client_context(), host=host)
    return common_name(client.getpeercert())


def common_name(certificate: object) -> str:
    assert isinstance(certificate, dict)
    return str(certificate["subject"][0][0][1])


def test_unchanged_files_are_not_read_again(files: Files) -> None:
    context = ReloadingContext.for_listener(files.settings())
    current = context.current

    assert not context.refresh()
    assert context.current is current


@pytest.mark.parametrize("host", ["localhost", None])
def test_a_new_keystore_is_for_new_connections(files: Files, host: str | None) -> None:
    context = ReloadingContext.for_listener(files.settings())
    server, client = handshake(context, client_context(), host=host)
    files.certify("second")

    assert presented(context, host=host) == "first"
    assert context.refresh()
    assert presented(context, host=host) == "second"
    assert common_name(client.getpeercert()) == "first"
    assert exchange(client, server, b"still open") == b"still open"


def test_a_truststore_that_changes_alone_is_used(files: Files) -> None:
    context = ReloadingContext.for_listener(files.settings(ssl_client_auth="required"))
    known = ReloadingContext.for_connections(files.settings())
    handshake(context, known)
    files.trust(NEXT_AUTHORITY)

    assert context.refresh()
    with pytest.raises(ssl.SSLError):
        handshake(context, known)


def test_connections_to_other_brokers_trust_the_new_truststore(files: Files) -> None:
    listener = ReloadingContext.for_listener(files.settings())
    connections = ReloadingContext.for_connections(files.settings())
    files.trust(NEXT_AUTHORITY)
    files.certify("second", by=NEXT_AUTHORITY)
    listener.refresh()
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(listener, connections)

    assert connections.refresh()
    handshake(listener, connections)


def test_a_file_that_is_half_written_changes_nothing_until_it_is_complete(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    context = ReloadingContext.for_listener(files.settings())
    complete = files.certify("second")
    files.keystore.write_bytes(complete[: len(complete) // 2])

    with caplog.at_level(logging.WARNING):
        assert not context.refresh()
        assert not context.refresh()

    (warning,) = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert warning.startswith("TLS goes on with the files that were loaded before: ssl.keystore.location is ")
    assert PASSWORD not in warning
    assert presented(context) == "first"

    files.keystore.write_bytes(complete)
    assert context.refresh()
    assert presented(context) == "second"


def test_a_file_that_is_removed_changes_nothing(files: Files) -> None:
    context = ReloadingContext.for_listener(files.settings())
    files.keystore.unlink()

    assert not context.refresh()
    assert presented(context) == "first"


def test_a_replacement_of_the_same_size_and_time_is_found_by_its_inode(files: Files) -> None:
    padded = len(AUTHORITY.certificate) + len(NEXT_AUTHORITY.certificate)
    replace(files.truststore, AUTHORITY.certificate.encode().ljust(padded))
    before = files.truststore.stat()
    context = ReloadingContext.for_connections(files.settings())
    replace(files.truststore, NEXT_AUTHORITY.certificate.encode().ljust(padded))
    os.utime(files.truststore, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = files.truststore.stat()

    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert context.refresh()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_listening_server_presents_the_new_certificate(
    files: Files, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async def connect(port: int, host: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # An empty server_hostname is asyncio's way to send no server name (SNI).
        return await asyncio.open_connection("127.0.0.1", port, ssl=client_context(), server_hostname=host)

    async def answer(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> str:
        reader, writer = connection
        writer.write(b"echo")
        assert await reader.readexactly(4) == b"echo"
        return common_name(writer.get_extra_info("peercert"))

    async def scenario() -> None:
        context = ReloadingContext.for_listener(files.settings())
        server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        before = await connect(port, "localhost")
        assert await answer(before) == "first"
        files.certify("second")
        assert context.refresh()
        after = [await connect(port, "localhost"), await connect(port, "")]
        assert [await answer(each) for each in after] == ["second", "second"]
        assert await answer(before) == "first"
        server.close()
        for _, writer in (before, *after):
            writer.close()
            await writer.wait_closed()
        await server.wait_closed()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())
