"""Whether a server that does not answer as expected speaks HTTP or Kafka's protocol."""

import socket
from contextlib import suppress
from typing import Final

PROBE_S: Final = 1.0
_HTTP: Final = b"HTTP/"
_HEAD: Final = b"HEAD / HTTP/1.0\r\n\r\n"
_API_VERSIONS: Final = bytes.fromhex("0000000f 0012 0000 00000001 0005 70726f6265")  # of a client "probe"
_CORRELATION_ID: Final = bytes.fromhex("00000001")


def speaks_http(host: str, port: int) -> bool:
    """Whether a server answers an HTTP request within a second."""
    return _answer(host, port, _HEAD, len(_HTTP)) == _HTTP


def speaks_kafka(host: str, port: int) -> bool:
    """Whether a broker answers ApiVersions without TLS within a second."""
    return _answer(host, port, _API_VERSIONS, 8)[4:] == _CORRELATION_ID


def _answer(host: str, port: int, request: bytes, size: int) -> bytes:
    """Return the first bytes of the answer to a request; fewer if the server hangs up or is too slow."""
    answer = b""
    with suppress(OSError), socket.create_connection((host, port), PROBE_S) as connection:
        connection.sendall(request)
        while len(answer) < size and (received := connection.recv(size - len(answer))):
            answer += received
    return answer
