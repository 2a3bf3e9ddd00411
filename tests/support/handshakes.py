"""TLS between two contexts, in memory."""

import ssl
from contextlib import suppress


def handshake(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext, *, host: str | None = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Connect a client to a server; ssl.SSLError if one of them refuses the other.

    Without a host the client sends no server name (SNI).
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    waiting = [client, server]
    while waiting:
        for side in list(waiting):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
                waiting.remove(side)
    return server, client


def exchange(sender: ssl.SSLObject, receiver: ssl.SSLObject, data: bytes) -> bytes:
    """Return what arrives of `data`."""
    sender.write(data)
    return receiver.read(len(data) + 1)
