"""Connections from this broker to the brokers of its cluster: requests out, responses back, in order."""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any, Final, NamedTuple, Protocol, cast

from headrace import __version__
from headrace.broker.peers.authentication import PeerCredentials
from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.api import decode_response, request_class
from headrace.protocol.api_versions import BROKER_SOFTWARE
from headrace.protocol.between_brokers.broker_metrics import BROKER_METRICS
from headrace.protocol.between_brokers.step_down import STEP_DOWN
from headrace.protocol.between_brokers.update_metadata import UPDATE_METADATA
from headrace.protocol.buffer_pool import BufferPool
from headrace.protocol.errors import ProtocolError
from headrace.protocol.frame import FrameBuffer, encode_frame
from headrace.protocol.headers import decode_response_header, encode_request_header
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone, UnsupportedByPeer
from headrace.protocol.schema.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.request_header import RequestHeader
from headrace.security.listeners import Endpoint

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
CONNECT_TIMEOUT_S = 3.0
_NEGOTIATION_VERSION = 3  # of ApiVersions: the first with the name of the software
_RENEWED_AFTER = 0.8  # of the time for which an authentication is valid

FIRST_VERSIONS: Final[Mapping[int, range]] = {
    UPDATE_METADATA: range(8, 9),
    ApiKey.ENVELOPE: range(1),
    BROKER_METRICS: range(1),
    STEP_DOWN: range(1),
}
"""Of brokers that do not list these APIs. Never change it: such brokers do not change any more either."""

logger = logging.getLogger(__name__)


class PeerVersions(NamedTuple):
    """The versions that another broker supports, by API key; each connection learns it from ApiVersions.

    During a rolling upgrade the brokers of a cluster differ: a request is sent in the highest version that
    both brokers know. ApiVersions lists the APIs that only brokers use to brokers alone, which give
    `BROKER_SOFTWARE` as the name of their software. Brokers from before this rule list none of them, and
    support `FIRST_VERSIONS`.
    """

    supported: Mapping[int, range]

    @classmethod
    def of(cls, response: ApiVersionsResponse) -> "PeerVersions":
        listed = {each.api_key: range(each.min_version, each.max_version + 1) for each in response.api_keys}
        return cls(listed if UPDATE_METADATA in listed else {**FIRST_VERSIONS, **listed})

    def common(self, key: int, versions: range) -> range:
        """Return the versions among `versions` that the other broker supports; perhaps none."""
        theirs = self.supported.get(key, range(0))
        return range(max(versions.start, theirs.start), min(versions.stop, theirs.stop))

    def choose(self, key: int, versions: range) -> int:
        """Return the highest version of an API that both brokers support, or raise UnsupportedByPeer."""
        common = self.common(key, versions)
        if common:
            return common[-1]
        theirs = self.supported.get(key)
        found = "does not support it" if theirs is None else f"supports {_text(theirs)}"
        name = request_class(key).__name__.removesuffix("Request")
        raise UnsupportedByPeer(
            f"{name} is needed in {_text(versions)}, and the broker {found} (UNSUPPORTED_VERSION)", key
        )


def _text(versions: range) -> str:
    first, last = versions.start, versions.stop - 1
    return f"v{first}" if first == last else f"v{first}-v{last}"


class _Pending:
    """A request whose response has not arrived yet."""

    __slots__ = ("correlation_id", "future", "key", "version")

    def __init__(self, key: int, version: int, correlation_id: int, future: "asyncio.Future[Any]") -> None:
        self.key, self.version, self.correlation_id, self.future = key, version, correlation_id, future


class AskController(Protocol):
    """Sends a request to the controller and returns its response; raises PeerGone or NotController."""

    async def __call__(self, request: Message, versions: range, *, timeout_s: float) -> Any: ...


class Peer(asyncio.BufferedProtocol):
    """One connection. Several requests may be in flight; responses arrive in the order of the requests."""

    def __init__(self, client_id: str, pool: BufferPool | None = None) -> None:
        self._client_id = client_id
        self._frames = FrameBuffer(MAX_RESPONSE_BYTES, pool)
        self._pending: deque[_Pending] = deque()
        self._ids = count(1)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._reauthenticating: asyncio.Task[None] | None = None
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self.versions = PeerVersions({})  # until they are negotiated
        self.on_unsupported: Callable[[UnsupportedByPeer], None] = lambda error: logger.warning(
            "another broker cannot be sent a request: %s", error
        )

    @classmethod
    async def connect(
        cls,
        endpoint: Endpoint,
        client_id: str,
        pool: BufferPool | None = None,
        credentials: PeerCredentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> "Peer":
        """Return an authenticated connection to the broker at `endpoint`, or raise PeerGone."""
        loop = asyncio.get_running_loop()
        try:
            # Not `wait_for`: in Python 3.11 it may swallow the cancellation of its caller.
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, peer = await loop.create_connection(
                    lambda: cls(client_id, pool),
                    endpoint.host,
                    endpoint.port,
                    ssl=tls if endpoint.security_protocol.uses_tls else None,
                )
                await peer.negotiate()
                if credentials is not None and endpoint.security_protocol.uses_sasl:
                    await peer.authenticate(credentials)
        except (OSError, TimeoutError) as error:
            raise PeerGone(f"{endpoint} cannot be reached: {error or 'connection timed out'}") from error
        return peer

    async def negotiate(self) -> None:
        """Learn which versions the other broker supports; close the connection if that fails."""
        request = ApiVersionsRequest(
            client_software_name=BROKER_SOFTWARE, client_software_version=__version__
        )
        try:
            self.versions = PeerVersions.of(await self._send(request, _NEGOTIATION_VERSION, None))
        except BaseException:
            self.close()
            raise

    async def authenticate(self, credentials: PeerCredentials) -> None:
        """Authenticate, and again before that expires; close the connection if it fails."""
        try:
            lifetime_s = await credentials.authenticate(self.ask)
        except BaseException:
            self.close()
            raise
        if lifetime_s is not None:
            self._reauthenticating = self._loop.create_task(
                self._reauthenticate(credentials, _RENEWED_AFTER * lifetime_s)
            )

    async def _reauthenticate(self, credentials: PeerCredentials, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        try:
            await self.authenticate(credentials)
        except PeerGone as error:
            logger.warning("the connection to another broker could not be authenticated again: %s", error)

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def common_versions(self, key: int, versions: range) -> range:
        """Return the versions of an API among `versions` that the other broker supports; perhaps none."""
        return self.versions.common(key, versions)

    async def closed(self) -> None:
        """Return when the connection has ended."""
        await asyncio.shield(self._gone)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def ask(self, request: Message, versions: range, *, timeout_s: float | None = None) -> Any:
        """Return the response to `request`, which is sent in the highest common version of both brokers.

        PeerGone if the connection ends first, or after `timeout_s`; UnsupportedByPeer if there is no such
        version.
        """
        assert request.__api_key__ is not None, request
        try:
            version = self.versions.choose(request.__api_key__, versions)
        except UnsupportedByPeer as error:
            self.on_unsupported(error)
            raise
        return await self._send(request, version, timeout_s)

    async def _send(self, request: Message, version: int, timeout_s: float | None) -> Any:
        if self._transport is None:
            raise PeerGone("the connection has ended")
        key = request.__api_key__
        assert key is not None, request
        correlation_id = next(self._ids)
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self._client_id,
        )
        future: asyncio.Future[Any] = self._loop.create_future()
        self._pending.append(_Pending(key, version, correlation_id, future))
        self._transport.writelines(encode_frame(encode_request_header(header), request.encode(version)))
        if timeout_s is None:
            return await future
        timer = self._loop.call_later(timeout_s, self._give_up, future, timeout_s)
        try:
            return await future
        finally:
            timer.cancel()

    def _give_up(self, future: "asyncio.Future[Any]", timeout_s: float) -> None:
        if not future.done():
            future.set_exception(PeerGone(f"no response within {timeout_s} s"))
            self.close()  # responses come in order: a late one would be matched to the next request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._frames.release()
        if self._reauthenticating is not None:
            self._reauthenticating.cancel()
        if not self._gone.done():
            self._gone.set_result(None)
        for pending in self._pending:
            if not pending.future.done():
                pending.future.set_exception(PeerGone(f"the connection has ended: {exc or 'closed'}"))
        self._pending.clear()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.received(nbytes):
                self._respond(frame)
            self._frames.settle()
        except (ProtocolError, IndexError) as error:
            logger.warning("closing the connection to another broker: %s", error)
            self.close()

    def _respond(self, frame: memoryview) -> None:
        pending = self._pending.popleft()
        correlation_id, body = decode_response_header(pending.key, pending.version, frame)
        if correlation_id != pending.correlation_id:
            raise ProtocolError(f"response {correlation_id} to request {pending.correlation_id}")
        response = decode_response(pending.key, pending.version, body)
        if not pending.future.done():
            pending.future.set_result(response)


class Peers:
    """Connects this broker to the inter-broker listeners of others."""

    def __init__(
        self,
        client_id: str,
        listener: str,
        pool: BufferPool,
        credentials: PeerCredentials | None = None,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        self._client_id = client_id
        self._listener = listener
        self._pool = pool
        self._tls = tls
        # What was logged last: by broker, why TLS has failed; by broker and API, why it is not supported.
        self._logged: dict[tuple[int, int | None], str] = {}
        self.credentials = credentials

    async def connect(self, registration: BrokerRegistration) -> Peer:
        """Connect to another broker; PeerGone if it cannot be reached.

        A certificate that is refused is logged once: nobody but an operator can replace it.
        """
        endpoint = registration.endpoint(self._listener)
        if endpoint is None:
            raise PeerGone(f"broker {registration.broker_id} has no listener {self._listener}")
        try:
            peer = await Peer.connect(endpoint, self._client_id, self._pool, self.credentials, self._tls())
        except PeerGone as error:
            if isinstance(error.__cause__, ssl.SSLError):
                self._warn(
                    registration.broker_id, None, "TLS with broker %d has failed, and is retried: %s", error
                )
            raise
        self._logged.pop((registration.broker_id, None), None)
        too_far = "the versions of this broker and of broker %d are too far apart: %s"
        peer.on_unsupported = lambda error: self._warn(registration.broker_id, error.key, too_far, error)
        return peer

    def _warn(self, broker_id: int, key: int | None, message: str, error: Exception) -> None:
        if self._logged.get((broker_id, key)) != str(error):
            self._logged[broker_id, key] = str(error)
            logger.warning(message, broker_id, error)


class PeerPool:
    """One connection to each broker that was sent a request; this broker handles its own requests itself.

    Requests to one broker are pipelined: a slow one delays the responses to those after it. So requests that
    wait for replicas have a pool of their own.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        connect_to: Callable[[int], Awaitable[Peer]],
        handle_locally: Callable[[Message, int], Awaitable[Any]],
    ) -> None:
        self._broker_id = broker_id
        self._connect_to = connect_to
        self._handle_locally = handle_locally
        self._peers: dict[int, Peer] = {}
        self._connecting: dict[int, asyncio.Lock] = {}

    async def ask(self, broker_id: int, request: Message, versions: range, *, timeout_s: float) -> Any:
        """Return the response of a broker; PeerGone if there is none within the timeout."""
        if broker_id == self._broker_id:
            return await self._handle_locally(request, versions[-1])
        peer = self._peers.get(broker_id)
        if peer is None or not peer.is_open:
            async with self._connecting.setdefault(broker_id, asyncio.Lock()):
                peer = self._peers.get(broker_id)
                if peer is None or not peer.is_open:
                    peer = self._peers[broker_id] = await self._connect_to(broker_id)
        return await peer.ask(request, versions, timeout_s=timeout_s)

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()


class LocalLink:
    """The controller's connection to its own broker: it calls the handlers directly."""

    def __init__(self, handle_locally: Callable[[Message, int], Awaitable[Any]]) -> None:
        self._handle_locally = handle_locally

    async def ask(self, request: Message, versions: range, *, timeout_s: float | None = None) -> Any:
        del timeout_s  # no network is involved that could delay the response
        await asyncio.sleep(0)  # a series of updates must not keep the event loop from other work
        return await self._handle_locally(request, versions[-1])

    def common_versions(self, key: int, versions: range) -> range:
        del key
        return versions

    async def closed(self) -> None:
        await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        """Do nothing: there is no connection to close."""
