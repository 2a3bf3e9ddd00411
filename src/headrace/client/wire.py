"""A connection to one broker, in Kafka's own words: for what librdkafka has no call for."""

import socket
from itertools import count
from struct import Struct
from typing import Any, Final, NamedTuple

from headrace.client.errors import ClientError
from headrace.protocol.api import response_class
from headrace.protocol.errors import ProtocolError
from headrace.protocol.frame import encode_frame
from headrace.protocol.headers import decode_response_header, encode_request_header
from headrace.protocol.message import Message
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.request_header import RequestHeader

CONNECT_S: Final = 3.0
ANSWER_S: Final = 30.0
MAX_RESPONSE_BYTES: Final = 256 * 1024 * 1024
CLIENT_ID: Final = "headrace-cli"
_SIZE: Final = Struct(">i")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class NoAnswer(Exception):
    """The broker cannot be reached, or has hung up, or has not answered in time."""


class NotKnown(ClientError):
    """The broker is too old, or somebody else's: it does not know such requests."""


class Connection:
    """A connection to one broker; every request is in the newest version that both sides know."""

    def __init__(self, address: Address, *, answer_s: float = ANSWER_S) -> None:
        self.address = address
        self._ids = count(1)
        try:
            self._socket = socket.create_connection(address, CONNECT_S)
            self._socket.settimeout(answer_s)
        except OSError as error:
            raise NoAnswer(f"{address} cannot be reached: {_why(error)}") from error
        self._versions = {
            each.api_key: range(each.min_version, each.max_version + 1)
            for each in self._ask(ApiVersionsRequest(), 0).api_keys
        }

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Message) -> Any:
        """The broker's response; NoAnswer if there is none, NotKnown if it knows no such requests."""
        return self._ask(request, self._version(request))

    def _version(self, request: Message) -> int:
        key = _key(request)
        theirs = self._versions.get(key, range(0))
        common = [each for each in request.__codec__.versions if each in theirs]
        if not common:
            name = type(request).__name__.removesuffix("Request")
            raise NotKnown(f"the broker at {self.address} does not know {name} requests")
        return max(common)

    def _ask(self, request: Message, version: int) -> Any:
        header = RequestHeader(
            request_api_key=_key(request),
            request_api_version=version,
            correlation_id=next(self._ids),
            client_id=CLIENT_ID,
        )
        try:
            return self._exchange(header, request)
        except (OSError, ProtocolError) as error:
            self.close()
            raise NoAnswer(f"{self.address} does not answer: {_why(error)}") from error

    def _exchange(self, header: RequestHeader, request: Message) -> Any:
        key, version = header.request_api_key, header.request_api_version
        self._socket.sendall(b"".join(encode_frame(encode_request_header(header), request.encode(version))))
        correlation_id, body = decode_response_header(key, version, self._receive())
        if correlation_id != header.correlation_id:
            raise ProtocolError(f"response {correlation_id} to request {header.correlation_id}")
        return response_class(key).decode(body, version)

    def _receive(self) -> memoryview:
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
        if not 0 <= size <= MAX_RESPONSE_BYTES:
            raise ProtocolError(f"a response of {size} bytes")
        return memoryview(self._exactly(size))

    def _exactly(self, size: int) -> bytearray:
        received = bytearray()
        while len(received) < size:
            some = self._socket.recv(min(size - len(received), 1024 * 1024))
            if not some:
                raise ConnectionResetError("it has closed the connection")
            received += some
        return received


def _key(request: Message) -> int:
    assert request.__api_key__ is not None, request
    return request.__api_key__


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it takes too long"
    said = getattr(error, "strerror", None) or str(error)
    return f"{said[:1].lower()}{said[1:]}"
