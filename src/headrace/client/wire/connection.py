"""A connection to one broker, in Kafka's own words: for what librdkafka has no call for."""

import socket
import ssl
from collections.abc import Iterator
from itertools import count
from struct import Struct
from typing import Any, Final, NamedTuple

from headrace.client.errors import ClientError, Refused
from headrace.client.wire.sasl import no_sasl
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.client.wire.tls import speaks_tls
from headrace.protocol.api import ApiKey, response_class
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.frame import encode_frame
from headrace.protocol.headers import decode_response_header, encode_request_header
from headrace.protocol.message import Message
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.request_header import RequestHeader

CONNECT_S: Final = 3.0
ANSWER_S: Final = 30.0
MAX_RESPONSE_BYTES: Final = 256 * 1024 * 1024
CLIENT_ID: Final = "headrace-cli"
_OURS: Final = 10_000  # keys from there on are Headrace's; no client is told of them
_HTTP: Final = int.from_bytes(b"HTTP", "big")  # how the answer of a web server begins
_SENT_ALONE_BYTES: Final = 64 * 1024
_TRUSTED_BYTES: Final = 8 * 1024 * 1024  # that a response may claim before any of it has arrived
_SIZE: Final = Struct(">i")
_HUNG_UP: Final = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class NoAnswer(Exception):
    """The broker cannot be reached, or has hung up, or has not answered in time."""

    def __init__(self, why: str, *, doubt: str = "") -> None:
        super().__init__(why)
        self.doubt = doubt  # what to ask oneself, unless other connections show that it is right


class NotKnown(ClientError):
    """The broker is too old, or somebody else's: it does not know such requests."""


class Asked(NamedTuple):
    """A request that is on its way; whoever sent it receives the response."""

    api_key: int
    version: int
    correlation_id: int


class Connection:
    """A connection to one broker; every request is in the newest version that both sides know."""

    def __init__(
        self,
        address: Address,
        *,
        answer_s: float = ANSWER_S,
        client_id: str = CLIENT_ID,
        security: Security = PLAINTEXT,
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._security = security
        self._has_answered = False  # more than which requests it knows, which it tells anybody
        self._ids = count(1)
        try:
            self._socket = security.connect(address.host, address.port, CONNECT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(answer_s)
        except OSError as error:
            raise self._failed("cannot be reached", error, connected=False) from error
        try:
            self._versions = {
                each.api_key: range(each.min_version, each.max_version + 1)
                for each in self._ask(ApiVersionsRequest(), 0).api_keys
            }
            security.authenticate(self.ask, str(address))
        except NotKnown as error:
            self.close()
            raise no_sasl(str(address)) from error
        except ClientError:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Message) -> Any:
        """The broker's response; NoAnswer if there is none, NotKnown if it knows no such requests."""
        return self._ask(request, self.version(request))

    def version(self, request: Message) -> int:
        """The newest version of such requests that both sides know."""
        key = _key(request)
        if key >= _OURS:
            return max(request.__codec__.versions)
        theirs = self._versions.get(key, range(0))
        common = [each for each in request.__codec__.versions if each in theirs]
        if not common:
            name = type(request).__name__.removesuffix("Request")
            raise NotKnown(f"the broker at {self.address} does not know {name} requests")
        return max(common)

    def _ask(self, request: Message, version: int) -> Any:
        return self.receive(self.send(request, version))

    def send(self, request: Message, version: int) -> Asked:
        """Send a request whose response is received later; several may be on their way at a time."""
        asked = Asked(_key(request), version, next(self._ids))
        header = RequestHeader(
            request_api_key=asked.api_key,
            request_api_version=version,
            correlation_id=asked.correlation_id,
            client_id=self._client_id,
        )
        try:
            self._send(encode_frame(encode_request_header(header), request.encode(version)))
        except OSError as error:
            self.close()
            raise self._failed("does not answer", error) from error
        return asked

    def receive(self, asked: Asked) -> Any:
        """The response to the oldest request that has none yet, which is `asked`."""
        try:
            answer = response_class(asked.api_key).decode(self._body(asked), asked.version)
        except (OSError, ProtocolError) as error:
            self.close()
            raise self._failed("does not answer", error) from error
        self._has_answered |= asked.api_key != ApiKey.API_VERSIONS
        return answer

    def _failed(self, what: str, error: OSError | ProtocolError, *, connected: bool = True) -> Exception:
        """NoAnswer, or Refused if another attempt would not change it."""
        refusal = self._security.refusal(error, str(self.address)) if isinstance(error, OSError) else None
        if refusal is not None:
            return refusal
        doubtful = isinstance(error, _HUNG_UP) and not self._has_answered
        doubt = self._security.doubt(connected=connected) if doubtful else ""
        return NoAnswer(f"{self.address} {what}: {_why(error)}", doubt=doubt)

    def _body(self, asked: Asked) -> memoryview:
        correlation_id, body = decode_response_header(asked.api_key, asked.version, self._receive())
        if correlation_id != asked.correlation_id:
            raise ProtocolError(f"response {correlation_id} to request {asked.correlation_id}")
        return body

    def _send(self, buffers: list[Buffer]) -> None:
        for buffer in _joined(buffers):
            self._socket.sendall(buffer)

    def _receive(self) -> memoryview:
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
        if speaks_tls(size) and self._security.tls is None:
            self.close()
            raise Refused(f"{self.address} speaks TLS: set security.protocol to SSL or SASL_SSL")
        if size == _HTTP:
            self.close()
            raise Refused(f"{self.address} speaks HTTP: give the address of a broker, not the console's")
        if not 0 <= size <= MAX_RESPONSE_BYTES:
            raise ProtocolError(f"a response of {size} bytes")
        return memoryview(self._exactly(size))

    def _exactly(self, size: int) -> bytearray:
        """So many bytes; memory is taken as they arrive, up to what is asked for anyway."""
        received = bytearray(min(size, _TRUSTED_BYTES))
        have = 0
        while have < size:
            if have == len(received):
                received += bytes(min(size - have, len(received)))
            with memoryview(received) as view:
                count = self._socket.recv_into(view[have:])
            if not count:
                raise ConnectionResetError("it has closed the connection")
            have += count
        return received


def _joined(buffers: list[Buffer]) -> Iterator[Buffer]:
    """The same bytes in fewer pieces: small ones together, large ones as they are."""
    small = bytearray()
    for buffer in buffers:
        if len(buffer) < _SENT_ALONE_BYTES:
            small += buffer
        else:
            if small:
                yield small
                small = bytearray()
            yield buffer
    if small:
        yield small


def _key(request: Message) -> int:
    assert request.__api_key__ is not None, request
    return request.__api_key__


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it takes too long"
    if isinstance(error, _HUNG_UP):
        return "it has closed the connection"
    said = getattr(error, "strerror", None) or str(error)
    return f"{said[:1].lower()}{said[1:]}"
