"""A connection to one broker: requests and responses of Kafka's protocol over one socket."""

import math
import select
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from struct import Struct
from typing import Any, Final, NamedTuple

from headrace.client.errors import ClientError, Refused, Retriable
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
PROBE_S: Final = 1.0  # for a server that may speak another protocol
FIRST_ANSWER_S: Final = 0.4  # for the first response, before the server is tried with HTTP
ANSWER_S: Final = 30.0
MAX_RESPONSE_BYTES: Final = 256 * 1024 * 1024
CLIENT_ID: Final = "headrace-cli"
_OURS: Final = 10_000  # API keys from here on are Headrace's; ApiVersions does not list them
_HTTP: Final = int.from_bytes(b"HTTP", "big")  # the first bytes of a web server's response
NEWEST: Final = 1 << 15  # no limit for the version of a request
_SENT_ALONE_BYTES: Final = 64 * 1024
_TRUSTED_BYTES: Final = 8 * 1024 * 1024  # allocated for a response before any of it has arrived
_USED_OF_SESSION: Final = 0.85  # the part of a session's lifetime (KIP-368) in which requests are begun
_SIZE: Final = Struct(">i")
_HUNG_UP: Final = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class NoAnswer(Retriable):
    """The broker cannot be reached, closed the connection, or did not answer in time."""

    def __init__(self, why: str, *, doubt: str = "", timed_out: bool = False, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent  # whether the broker may have received the request
        self.doubt = doubt  # a likely cause, unless other connections of this kind work
        self.timed_out = timed_out


class NotKnown(ClientError):
    """The broker does not support this API: it is too old, or is not Headrace."""


class InFlight(NamedTuple):
    """A request that was sent and has no response yet."""

    api_key: int
    version: int
    correlation_id: int


class Connection:
    """A connection to one broker; every request has the newest version that both sides support."""

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
        self._has_answered = False  # a request other than ApiVersions, which needs no authentication
        self._ids = count(1)
        try:
            self._socket = security.connect(address.host, address.port, CONNECT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(answer_s)
        except OSError as error:
            raise self._failed("cannot be reached", error, connected=False) from error
        try:
            asked = self.send(ApiVersionsRequest(), 0)
            # A web server that reads lines would not answer a request of ours before its timeout.
            is_late = security.tls is None and not _readable(self._socket, FIRST_ANSWER_S)
            if is_late and speaks_http(*address):
                raise http_instead(str(address))
            self._versions = {
                api_key.api_key: range(api_key.min_version, api_key.max_version + 1)
                for api_key in self.receive(asked).api_keys
            }
            session_ms = security.authenticate(self.ask, str(address))
            self._ends_s = time.monotonic() + _USED_OF_SESSION * session_ms / 1000 if session_ms else math.inf
        except NotKnown as error:
            self.close()
            raise no_sasl(str(address)) from error
        except ClientError:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    @property
    def timeout_s(self) -> float | None:
        """How long a response may take."""
        return self._socket.gettimeout()

    @timeout_s.setter
    def timeout_s(self, seconds: float) -> None:
        self._socket.settimeout(seconds)

    @property
    def is_stale(self) -> bool:
        """Whether the broker has closed this idle connection, as a restarted one has, or soon will."""
        if self._socket.fileno() < 0 or time.monotonic() > self._ends_s:
            return True
        return _readable(self._socket, 0)

    def ask(self, request: Message, *, max_version: int = NEWEST) -> Any:
        """Return the broker's response; NoAnswer if there is none, NotKnown if it lacks the API."""
        return self.receive(self.send(request, self.version(request, max_version=max_version)))

    def version(self, request: Message, *, max_version: int = NEWEST) -> int:
        """Return the newest version of this request that both sides support; NotKnown if there is none."""
        key = _key(request)
        if key >= _OURS:
            return max(request.__codec__.versions)
        theirs = self._versions.get(key, range(0))
        common = [each for each in request.__codec__.versions if each in theirs and each <= max_version]
        if not common:
            name = type(request).__name__.removesuffix("Request")
            raise NotKnown(f"the broker at {self.address} does not support {name} (UNSUPPORTED_VERSION)")
        return max(common)

    def send(self, request: Message, version: int) -> InFlight:
        """Send a request whose response `receive` returns later; several may be in flight at a time."""
        sent = InFlight(_key(request), version, next(self._ids))
        header = RequestHeader(
            request_api_key=sent.api_key,
            request_api_version=version,
            correlation_id=sent.correlation_id,
            client_id=self._client_id,
        )
        try:
            for buffer in _joined(encode_frame(encode_request_header(header), request.encode(version))):
                self._socket.sendall(buffer)
        except OSError as error:
            self.close()
            raise self._failed("does not answer", error) from error
        return sent

    def receive(self, sent: InFlight) -> Any:
        """Return the response to `sent`, which is the oldest request in flight."""
        try:
            correlation_id, body = decode_response_header(sent.api_key, sent.version, self._receive())
            if correlation_id != sent.correlation_id:
                raise ProtocolError(f"response {correlation_id} to request {sent.correlation_id}")  # noqa: TRY301
            answer = response_class(sent.api_key).decode(body, sent.version)
        except (OSError, ProtocolError) as error:
            self.close()
            raise self._failed("does not answer", error) from error
        self._has_answered |= sent.api_key != ApiKey.API_VERSIONS
        return answer

    def _failed(self, what: str, error: OSError | ProtocolError, *, connected: bool = True) -> Exception:
        """Return NoAnswer, or Refused if a retry would fail in the same way."""
        refusal = self._security.refusal(error, str(self.address)) if isinstance(error, OSError) else None
        if refusal is not None:
            return refusal
        doubtful = isinstance(error, _HUNG_UP) and not self._has_answered
        doubt = self._security.doubt(connected=connected) if doubtful else ""
        timed_out = isinstance(error, TimeoutError)
        said = getattr(error, "strerror", None) or str(error)
        why = f"{said[:1].lower()}{said[1:]}"
        if timed_out:
            why = "it takes too long"
        elif isinstance(error, _HUNG_UP):
            why = "the broker closed the connection"
        reason = f"{self.address} {what}: {why}"
        return NoAnswer(reason, doubt=doubt, timed_out=timed_out, sent=connected)

    def _receive(self) -> memoryview:
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
        if speaks_tls(size) and self._security.tls is None:
            self.close()
            raise Refused(f"{self.address} speaks TLS: set security.protocol to SSL or SASL_SSL")
        if size == _HTTP:
            self.close()
            raise http_instead(str(self.address))
        if not 0 <= size <= MAX_RESPONSE_BYTES:
            raise ProtocolError(f"a response of {size} bytes")
        return memoryview(self._exactly(size))

    def _exactly(self, size: int) -> bytearray:
        """Receive `size` bytes; beyond _TRUSTED_BYTES, memory is allocated only as bytes arrive."""
        received = bytearray(min(size, _TRUSTED_BYTES))
        have = 0
        while have < size:
            if have == len(received):
                received += bytes(min(size - have, len(received)))
            with memoryview(received) as view:
                count = self._socket.recv_into(view[have:])
            if not count:
                raise ConnectionResetError("the broker closed the connection")
            have += count
        return received


def _readable(connected: socket.socket, within_s: float) -> bool:
    """Return whether bytes, or the end, arrive within this time."""
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def http_instead(address: str) -> Refused:
    """Return the error for the address of a web server in place of a broker's."""
    return Refused(
        f"{address} speaks HTTP, not Kafka's protocol: give the address of a broker, not that of the console "
        "and the schema registry"
    )


def speaks_http(host: str, port: int) -> bool:
    """Whether a server answers an HTTP request within a second."""
    return _first_bytes(host, port, b"HEAD / HTTP/1.0\r\n\r\n", 5) == b"HTTP/"


def speaks_kafka(host: str, port: int) -> bool:
    """Whether a broker answers ApiVersions, with correlation id 1, without TLS within a second."""
    api_versions = bytes.fromhex("0000000f 0012 0000 00000001 0005 70726f6265")  # of a client "probe"
    return _first_bytes(host, port, api_versions, 8)[4:] == bytes.fromhex("00000001")


def _first_bytes(host: str, port: int, request: bytes, size: int) -> bytes:
    """Return the first bytes of the answer to a request; fewer if the server hangs up or is too slow."""
    answer = b""
    with suppress(OSError), socket.create_connection((host, port), PROBE_S) as connection:
        connection.sendall(request)
        while len(answer) < size and (received := connection.recv(size - len(answer))):
            answer += received
    return answer


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
