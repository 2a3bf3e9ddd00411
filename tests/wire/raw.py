"""A client that says exactly what a test wants: our own codec over a plain socket, one thing at a time."""

import socket
import struct
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from headrace.protocol.api import response_class
from headrace.protocol.api_versions import answer_version
from headrace.protocol.frame import encode_frame
from headrace.protocol.headers import decode_response_header, encode_request_header
from headrace.protocol.message import Message
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.request_header import RequestHeader

TIMEOUT_S: Final = 10
CLIENT_ID: Final = "raw"


class RawClient:
    """One connection.

    with RawClient(broker.bootstrap) as client:
        response = client.ask(MetadataRequest(topics=None), version=12)
    """

    def __init__(self, bootstrap: str, client_id: str | None = CLIENT_ID) -> None:
        self._client_id = client_id
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def ask(self, request: Message, version: int) -> Any:
        """Send one request and return its response."""
        self.send(request, version)
        return self.receive(request, version)

    def send(self, request: Message, version: int) -> int:
        """Send a request and return its correlation id."""
        correlation_id = next(self._correlation_ids)
        self.socket.sendall(frame_of(request, version, correlation_id, self._client_id))
        return correlation_id

    def receive(self, request: Message, version: int) -> Any:
        """The next response, which must be to `request`."""
        return self.receive_numbered(request, version)[1]

    def receive_numbered(self, request: Message, version: int) -> tuple[int, Any]:
        """The correlation id of the next response, and the response."""
        key = request.__api_key__
        assert key is not None, request
        if key == ApiKey.API_VERSIONS:
            version = answer_version(version)
        correlation_id, body = decode_response_header(key, version, memoryview(self.receive_frame()))
        return correlation_id, response_class(key).decode(body, version)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def is_closed_by_the_broker(self) -> bool:
        """Whether the next thing to come is the end of the connection; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def has_something_to_read(self, within_s: float = 0.0) -> bool:
        self.socket.settimeout(max(within_s, 0.001))
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(TIMEOUT_S)

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError(f"closed after {len(data)} of {size} bytes")
            data += chunk
        return bytes(data)


def frame_of(
    request: Message, version: int, correlation_id: int = 1, client_id: str | None = CLIENT_ID
) -> bytes:
    """The bytes of a request, with size and header."""
    assert request.__api_key__ is not None, request
    header = RequestHeader(
        request_api_key=request.__api_key__,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return b"".join(encode_frame(encode_request_header(header), request.encode(version)))
