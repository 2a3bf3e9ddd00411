"""One connection of a client: requests are handled as they arrive, responses go out in the same order."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Final, NamedTuple, cast

from headrace.broker.network.fair_queue import QUANTUM_S
from headrace.broker.quotas.throttling import EXEMPT, RequestUsage, Timed, with_throttle_time
from headrace.broker.requests.dispatch import Context, Handler, HangUp, accepts_brokers, call, can_answer
from headrace.broker.requests.envelopes import forward
from headrace.broker.results import Encoded, Reply, Result
from headrace.broker.security.authentication import refuse
from headrace.broker.services import BrokerServices
from headrace.broker.slices import Sliced, Steps, free_later, in_slices
from headrace.protocol.api import decode_request, decode_request_in_slices, encode_response
from headrace.protocol.api_versions import answer_version
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.frame import CHUNK_BYTES, FrameBuffer, encode_frame
from headrace.protocol.headers import decode_request_header, encode_response_header
from headrace.protocol.message import Message
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.request_header import RequestHeader
from headrace.security.listeners import Listener, SecurityProtocol
from headrace.security.principal_mapping import NoMatchingRule
from headrace.security.principals import ANONYMOUS
from headrace.security.quota.entities import QuotaKey
from headrace.security.sasl.exchange import AuthenticationFailed
from headrace.security.sasl.session import SaslSession

MAX_IN_FLIGHT = 64  # requests of one connection without a response
SENT_TOGETHER_BYTES = 256 * 1024  # smaller responses are sent together
JOINED_BYTES = 4 * 1024  # responses up to this size are copied into one buffer, which is cheaper to send
JOINED_TLS_BYTES = 256 * 1024  # the same over TLS, where each buffer would become a record
WRITE_BUFFER_BYTES = 1024 * 1024  # unread responses before requests are no longer read
PARKED_BYTES = 1024 * 1024  # responses that wait for an earlier one before no more requests are handled
HALF_CLOSED_S = 1.0  # for pending responses after a client has closed its side: most such clients are gone
SLICED_BYTES: Final = 32 * 1024  # a request larger than this is decoded in slices
_BEFORE_AUTHENTICATION: Final = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
_LATE = frozenset(key.to_bytes(2, "big") for key in (ApiKey.FETCH, ApiKey.METADATA))  # a frame's first bytes

logger = logging.getLogger(__name__)


class _Slot:
    """The place of one response in the order of responses; filled when it is ready."""

    __slots__ = ("buffers",)

    def __init__(self) -> None:
        self.buffers: list[Buffer] | None = None


class _Request(NamedTuple):
    """A request that is answered later."""

    handler: Handler
    header: RequestHeader
    began: float
    usage: RequestUsage | None
    structs: list[Any]  # of the request and its response, if they are decoded and encoded in slices


class KafkaConnection(asyncio.BufferedProtocol):
    """Frame size, requests in flight and unread responses are bounded. An error closes only this connection.

    A Fetch, whose response may be large, is not handled before all earlier requests have been answered.
    Neither is Metadata: behind a long poll it would return leaders that have failed meanwhile. A request that
    takes more than a slice continues in a task, and later ones of the connection wait for it.
    """

    def __init__(self, broker: BrokerServices, handlers: Mapping[int, Handler], listener: Listener) -> None:
        self._broker = broker
        self._connections = broker.connections
        self.listener = listener
        self._joined_bytes = JOINED_TLS_BYTES if listener.security_protocol.uses_tls else JOINED_BYTES
        self._handlers = handlers
        self._frames = FrameBuffer(broker.config.integer("socket.request.max.bytes"), broker.buffers)
        self._backlog: deque[memoryview] = deque()  # frames that arrived together with earlier ones
        self._slots: deque[_Slot] = deque()
        self._parked = 0  # bytes of the responses in `_slots`
        self._out: list[Buffer] = []  # responses that are ready, to be sent together
        self._out_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport | None = None
        self._peer_reads = True
        self._paused = False
        self._is_slicing = False  # a long request is in progress
        self._waits_for_turn = False
        self._fair_queue = broker.fair_queue
        self.turn_round, self.turn_used_s = 0, 0.0
        self._receiving_since = 0.0
        self._sending_soon = False
        self._half_closed = False
        self._muted: asyncio.TimerHandle | None = None  # throttled until the timer ends
        self._used_quotas: set[QuotaKey] = set()  # while there are any
        self.last_active = perf_counter()
        self.address = ""
        self.principal = ANONYMOUS
        self._sasl = broker.authentication.session(listener)
        self.authenticating_since = None if self._sasl is None else self.last_active
        if self._sasl is not None:
            self._frames.max_frame_bytes = broker.config.integer("sasl.server.max.receive.size")
        self.client_id: str | None = None  # of its last request
        self._context: Context | None = None  # of its last request
        self.buffered = 0  # bytes of its receive buffer
        self.held = 0  # bytes of a request that waits until its client is no longer throttled
        self.unsent = 0  # bytes of unsent responses that are accounted for

    @property
    def unsent_now(self) -> int:
        """Bytes of responses that are ready and not yet written to the socket."""
        if self._transport is None:
            return 0
        return self._parked + self._out_bytes + self._transport.get_write_buffer_size()

    # -- asyncio.BufferedProtocol -------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else "local"
        if not self._connections.admit(self):
            self._transport.abort()
        elif self.listener.security_protocol is SecurityProtocol.SSL:
            # The client is named after its certificate; without one it is ANONYMOUS.
            certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
            try:
                self.principal = self._broker.tls.principals(self.listener).principal(certificate)
            except NoMatchingRule as error:
                logger.warning("closing the connection of %s: %s", self.address, error)
                self.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._unmute()
        self._backlog.clear()
        self._frames.release()
        self._connections.forget(self)
        for task in tuple(self._tasks):
            task.cancel()

    def get_buffer(self, sizehint: int) -> memoryview:
        self._receiving_since = perf_counter()
        buffer = self._frames.get_buffer(sizehint)
        if self._frames.capacity != self.buffered:
            self._connections.account(self, self._frames.capacity)
        return buffer

    def rest(self) -> None:
        """Give the receive buffer back until the client sends something."""
        if self._frames.capacity or self.buffered:
            self._frames.rest()
            self._connections.account(self, self._frames.capacity)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._backlog.extend(self._frames.received(nbytes))
        except ProtocolError as error:
            logger.warning("closing the connection of %s: %s", self.address, error)
            self.close()
            return
        self.last_active = now = perf_counter()
        self._fair_queue.charge(self, now - self._receiving_since)
        if not self._fair_queue.has_turn(self):
            self._wait_for_turn()
        elif self._backlog:
            self._work(now)

    def _continue(self) -> None:
        """Handle requests that arrived while no more could be handled."""
        if self._fair_queue.has_turn(self):
            self._work(perf_counter())
        else:
            self._wait_for_turn()

    def take_turn(self) -> bool:
        """Work for a quantum, and read from the socket again; return False if the connection is closed."""
        self._waits_for_turn = False
        self._work(perf_counter())
        return self._transport is not None

    def _wait_for_turn(self) -> None:
        """Let other connections have a turn, and read nothing until then."""
        if not self._waits_for_turn:
            self._waits_for_turn = True
            self._fair_queue.wait(self)
            self._pause_or_resume()

    def _work(self, began: float) -> None:
        """Handle the received requests while the client reads its responses; send responses together."""
        try:
            self._pause_or_resume()
            while self._backlog and not self._paused and self._transport is not None:
                self._handle(self._backlog.popleft())
                if self._slots:
                    self._pause_or_resume()
                if self._backlog and perf_counter() > began + QUANTUM_S:
                    self._wait_for_turn()
            self._send_out()
            self._connections.account_replies(self)
            self._close_if_done()
        except (ProtocolError, HangUp, AuthenticationFailed) as error:
            level = error.level if isinstance(error, HangUp) else logging.WARNING
            logger.log(level, "closing the connection of %s: %s", self.address, error)
            self.close()
        except Exception:
            logger.exception("closing the connection of %s", self.address)
            self.close()
        self._fair_queue.charge(self, perf_counter() - began)

    def eof_received(self) -> bool:
        """Send the responses that are ready soon, and close.

        Over TLS only those that are ready now: the event loop ends the connection when this returns, because
        a close_notify ends both directions before TLS 1.3. Kafka does so as well.
        """
        if self.listener.security_protocol.uses_tls:
            self._put_out_ready()
            self._send_out()
            return False
        if not self._slots and not self._backlog:
            return False
        self._half_closed = True
        self._broker.loop.call_later(HALF_CLOSED_S, self.close)
        return True

    def pause_writing(self) -> None:
        self._peer_reads = False
        self._regulate()

    def resume_writing(self) -> None:
        self._peer_reads = True
        self._regulate()

    # -- requests ------------------------------------------------------------------------------

    def _handle(self, frame: memoryview) -> None:
        if self._sasl is not None and self._sasl.is_raw:
            self._authenticate_raw(self._sasl, frame)
            return
        header, body = decode_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        self.client_id = header.client_id
        handler = self._handler(key, version)
        if self._sasl is not None and key not in _BEFORE_AUTHENTICATION:
            principal = self._sasl.principal  # None: not authenticated, or not again in time
            if principal is None:
                raise HangUp(f"{handler.key.name} is not accepted before authentication")
            self.principal = principal
        usage = self._usage(header, handler, frame) if self._broker.quotas.is_active else None
        if usage is not None and (muted_ms := usage.muted_ms(version, self._used_quotas)):
            self._backlog.appendleft(frame)
            self.mute(muted_ms)
            self._connections.hold(self, max(len(frame), CHUNK_BYTES))
        else:
            self._serve(header, body, handler, usage)

    def _serve(
        self, header: RequestHeader, body: memoryview, handler: Handler, usage: RequestUsage | None
    ) -> None:
        began = perf_counter()
        key, version = header.request_api_key, header.request_api_version
        context = self._context_of(header, usage)
        is_large = len(body) > SLICED_BYTES and key != ApiKey.API_VERSIONS
        structs: list[Any] = []
        if is_large:
            result = Result(steps=self._decode_and_call(body, handler, context, structs))
        else:
            result = self._call(decode_request(key, version, body), handler, context)
        if result.steps is not None:
            work = Sliced(result.steps)
            if not work.run():
                self._is_slicing = True
                request = _Request(handler, header, began, usage, structs)
                self._answer_later(partial(self._finish, work), request)
                return
            result = work.result
        if self._sasl is not None and key == ApiKey.SASL_AUTHENTICATE:
            self._authentication_continued(self._sasl)
        if result.later is not None:
            request = _Request(handler, header, began, usage, structs)
            self._answer_later(partial(self._wait, result.later, in_slices=is_large), request)
            return
        reply = result.reply if usage is None else self._charged(result.reply, header, usage)
        if reply is not None:
            self._answer(reply, header)
        self._broker.meters.request(key).done(began)

    def _context_of(self, header: RequestHeader, usage: RequestUsage | None) -> Context:
        """Return the context of a request; that of the last one if it is the same."""
        last = self._context
        if (
            last is not None
            and usage is None
            and last.usage is None
            and last.version == header.request_api_version
            and last.client_id == header.client_id
            and last.principal is self.principal
        ):
            return last
        self._context = context = Context(
            self._broker,
            self.listener,
            header.client_id,
            header.request_api_version,
            self.address,
            self.principal,
            self._sasl,
            self._broker.authorizer,
            usage,
        )
        return context

    def _usage(self, header: RequestHeader, handler: Handler, frame: memoryview) -> RequestUsage | None:
        """Return what will be charged to the client's quotas; None for a request that is exempt from them."""
        key = header.request_api_key
        if handler.inter_broker or key in EXEMPT or (self._sasl is not None and self._sasl.principal is None):
            return None
        return RequestUsage(self._broker.quotas, self.principal.name, header.client_id, key, len(frame))

    def _charged(self, reply: Reply, header: RequestHeader, usage: RequestUsage | None) -> Reply:
        """Charge a request whose response is ready; return the response with its throttle time."""
        if usage is None:
            return reply
        throttle_ms = usage.charge(answered=reply is not None)
        key, version = header.request_api_key, header.request_api_version
        reply, throttle_ms = with_throttle_time(reply, throttle_ms, key, version)
        if throttle_ms:
            usage.mute(throttle_ms)
            self.mute(throttle_ms)
        return reply

    def mute(self, duration_ms: int) -> None:
        """Read nothing, and handle no request that has arrived, for this time; responses are sent."""
        loop = self._broker.loop
        if self._muted is not None:
            if self._muted.when() >= loop.time() + duration_ms / 1000:
                return
            self._unmute()
        self._muted = loop.call_later(duration_ms / 1000, self._unmute)
        self._broker.quotas.muted += 1
        self._regulate()

    def _unmute(self) -> None:
        if self._muted is not None:
            self._muted.cancel()
            self._muted = None
            self._broker.quotas.muted -= 1
            self._connections.hold(self, 0)
            self._regulate()

    def _handler(self, key: int, version: int) -> Handler:
        """Return the handler of an API; ProtocolError if it is not supported, or not on this listener."""
        handler = self._handlers.get(key)
        if handler is None:
            raise ProtocolError(f"API key {key} is not supported")
        if handler.inter_broker and not accepts_brokers(self.listener, self._broker.authorizer):
            raise ProtocolError(f"{handler.key.name} is not accepted on listener {self.listener.name}")
        if version not in handler.versions and key != ApiKey.API_VERSIONS:
            raise ProtocolError(f"{handler.key.name} v{version} is not supported")
        return handler

    def _authenticate_raw(self, sasl: SaslSession, frame: memoryview) -> None:
        """Answer a message of a SASL mechanism that comes without a request around it."""
        if sasl.has_failed:
            return  # the connection is about to be closed
        try:
            self._put_out(encode_frame(b"", [sasl.respond(bytes(frame))]))
            self._authentication_continued(sasl)
        except AuthenticationFailed as error:
            delay_s = refuse(error, self.address, self._broker.meters, self._broker.config)
            self._broker.loop.call_later(delay_s, self.close)

    def _authentication_continued(self, sasl: SaslSession) -> None:
        """Lift the limits for the size of requests and for the time once the client has authenticated.

        The next request may be a large Produce, and its size is checked before it is handled.
        """
        if sasl.principal is not None:
            self.authenticating_since = None
            self._frames.max_frame_bytes = self._broker.config.integer("socket.request.max.bytes")

    def _call(self, request: Any, handler: Handler, context: Context) -> Result:
        """Return what the handler returns, once it can answer, or what the controller answers."""
        if (handler.on_controller or handler.when_ready) and not can_answer(handler, self._broker):
            return Result(later=self._answer_elsewhere(request, handler, context))
        return call(handler, request, context)

    def _decode_and_call(
        self, body: memoryview, handler: Handler, context: Context, structs: list[Any]
    ) -> Steps[Result]:
        """Decode a large request in steps, then call its handler."""
        request = yield from decode_request_in_slices(handler.key, context.version, body, structs)
        result = self._call(request, handler, context)
        return result if result.steps is None else (yield from result.steps)

    async def _finish(self, work: Sliced[Result], request: _Request) -> Reply:
        """Return the response to a long request. One at a time over all connections, to bound the memory."""
        async with self._broker.long_requests:
            try:
                result = await work.finish()
            finally:
                self._is_slicing = False
                self._regulate()
            if result.later is None:
                return await self._encoded(result.reply, request)
        return await self._wait(result.later, request, in_slices=True)

    async def _wait(self, later: Awaitable[Reply], request: _Request, *, in_slices: bool) -> Reply:
        """Return a response that is not ready yet; that to a large request may be as large."""
        reply = await later
        if in_slices:
            return await self._encoded(reply, request)
        return self._charged(reply, request.header, request.usage)

    async def _encoded(self, reply: Reply, request: _Request) -> Reply:
        """Return the response with its throttle time, encoded in slices."""
        reply = self._charged(reply, request.header, request.usage)
        if isinstance(reply, Message):
            version = request.header.request_api_version
            return Encoded(await in_slices(reply.encode_in_slices(version, request.structs)))
        return reply

    async def _answer_elsewhere(self, request: Any, handler: Handler, context: Context) -> Reply:
        """Wait until this broker has the cluster's metadata; forward a request for the controller."""
        await self._broker.ready.wait()
        if handler.on_controller and not can_answer(handler, self._broker):
            return await forward(request, context)
        reply: Reply = await call(handler, request, context).response()
        return reply

    def _answer(self, reply: Any, header: RequestHeader) -> None:
        buffers = _encode(reply, header)
        if self._slots:
            slot = _Slot()
            slot.buffers = buffers
            self._slots.append(slot)
            self._parked += sum(map(len, buffers))
        else:
            self._put_out(buffers)

    def _put_out(self, buffers: list[Buffer]) -> None:
        """Add a response to those that are sent together, so that the client is woken only once."""
        self._out += buffers
        self._out_bytes += sum(map(len, buffers))
        if self._out_bytes >= SENT_TOGETHER_BYTES:
            self._send_out()

    def _send_out(self) -> None:
        if self._out and self._transport is not None:
            if self._out_bytes <= self._joined_bytes:
                self._transport.write(b"".join(self._out))
            else:
                self._transport.writelines(self._out)
            self._out, self._out_bytes = [], 0

    def _answer_later(self, respond: Callable[[_Request], Awaitable[Reply]], request: _Request) -> None:
        slot = _Slot()
        self._slots.append(slot)
        if request.usage is not None:
            request.usage.pause()
        task = self._broker.loop.create_task(self._fill(slot, respond, request))
        self._tasks.add(task)
        task.add_done_callback(partial(self._answered, request.structs))

    def _answered(self, structs: list[Any], task: asyncio.Task[None]) -> None:
        """Forget the task of a request; its messages have no other owner by now than `structs`."""
        self._tasks.discard(task)
        if structs:
            free_later(structs, self._broker.loop)

    async def _fill(
        self, slot: _Slot, respond: Callable[[_Request], Awaitable[Reply]], request: _Request
    ) -> None:
        header = request.header
        try:
            response = respond(request)
            reply = await (response if request.usage is None else Timed(response, request.usage))
            self._broker.meters.request(header.request_api_key).done(request.began)
            slot.buffers = [] if reply is None else _encode(reply, header)
            self._parked += sum(map(len, slot.buffers))
        except (ProtocolError, HangUp) as error:
            logger.warning("closing the connection of %s: %s", self.address, error)
            self.close()
            return
        except Exception:
            name = request.handler.key.name
            logger.exception("%s of %s failed: closing its connection", name, self.address)
            self.close()
            return
        if len(self._slots) == 1:
            self._send_ready()
        elif not self._sending_soon:  # others may be ready in the same iteration of the event loop
            self._sending_soon = True
            self._broker.loop.call_soon(self._send_ready)

    def _send_ready(self) -> None:
        """Send the responses that are ready, up to the first one that is not."""
        self._sending_soon = False
        if self._transport is None:
            return
        self._put_out_ready()
        self._send_out()
        self._connections.account_replies(self)
        self._close_if_done()
        self._regulate()

    def _put_out_ready(self) -> None:
        while self._slots and (buffers := self._slots[0].buffers) is not None:
            self._slots.popleft()
            self._parked -= sum(map(len, buffers))
            self._put_out(buffers)

    def _close_if_done(self) -> None:
        has_failed = self._sasl is not None and self._sasl.has_failed and not self._sasl.is_raw
        is_over = self._half_closed or has_failed
        if is_over and not self._slots and not self._backlog:
            self.close()

    def _regulate(self) -> None:
        """Pause or resume reading, and handle the requests that have already arrived."""
        if self._pause_or_resume() and self._backlog:
            self._broker.loop.call_soon(self._continue)

    def _pause_or_resume(self) -> bool:
        """Pause or resume reading; return whether it was resumed.

        A client must read its responses, have few requests in flight, and let others have their turns.
        """
        pause = (
            not self._peer_reads
            or len(self._slots) >= MAX_IN_FLIGHT
            or self._parked >= PARKED_BYTES
            or self._is_slicing
            or self._waits_for_turn
            or self._muted is not None
            or bool(self._slots and self._backlog and bytes(self._backlog[0][:2]) in _LATE)
        )
        if self._transport is None or pause == self._paused:
            return False
        self._paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
        return not pause

    def close(self) -> None:
        """Send the responses that are ready and close."""
        self._backlog.clear()
        self._put_out_ready()
        self._send_out()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once; responses that are not sent are lost."""
        self._backlog.clear()
        if self._transport is not None:
            self._transport.abort()


def _encode(reply: Any, header: RequestHeader) -> list[Buffer]:
    key, version = header.request_api_key, header.request_api_version
    if key == ApiKey.API_VERSIONS:
        version = answer_version(version)
    head = encode_response_header(key, version, header.correlation_id)
    body = reply.body if isinstance(reply, Encoded) else encode_response(key, version, reply)
    return encode_frame(head, body)
