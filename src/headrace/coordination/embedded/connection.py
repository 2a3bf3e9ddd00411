"""One client's connection: frames in, messages out, and limits on both.

Malformed requests close the connection and affect no other. From a client that does not read its replies
nothing is read either, and if events for it accumulate all the same, its connection is closed.
"""

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from headrace.coordination.embedded.acl import Identity
from headrace.coordination.embedded.decide import Requester
from headrace.coordination.embedded.errors import MalformedRequest
from headrace.coordination.embedded.handlers import answer
from headrace.coordination.embedded.jute import INT, MAX_BUFFER
from headrace.coordination.embedded.requests import decode_connect
from headrace.coordination.embedded.txns import OpenSession
from headrace.security.certificate_fields import subject_name
from headrace.security.sasl.digest_md5 import DigestMd5Server

if TYPE_CHECKING:
    from headrace.coordination.embedded.server import Coordinator

FRAMES_PER_TURN: Final = 100  # then other connections are served
BYTES_PER_TURN: Final = 8 * 1024  # the same for large transactions; one more request may be added
PAUSE_REPLIES: Final = 1_000  # waiting for the disk
PAUSE_BYTES: Final = 1 << 20  # waiting for the disk or the client; one more reply may be added
MAX_UNSENT_BYTES: Final = 16 << 20  # of events: replies are limited earlier

logger = logging.getLogger(__name__)


class ZooKeeperConnection(asyncio.Protocol):
    def __init__(self, host: "Coordinator") -> None:
        self._host = host
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._waiting: deque[int] = deque()  # the sizes of messages that wait for the disk
        self._waiting_bytes = 0
        self._request_bytes = 0  # of the request that is being handled
        self._flush_planned = False
        self._turn_planned = False
        self._closing = False
        self._paused = False
        self.transport: asyncio.Transport
        self.loop = asyncio.get_running_loop()
        self.since = self.loop.time()
        self.closing_since: float | None = None
        self.address = ""
        self.port = 0
        self.requester = Requester(0, ())
        self.is_authenticated = False
        self.sasl: DigestMd5Server | None = None
        self.unopened: OpenSession | None = None

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are none of asyncio's classes
        self.address, self.port = transport.get_extra_info("peername")[:2]
        tls = transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if certificate:
            self.requester = Requester(0, (Identity("x509", subject_name(certificate)),))
            self.is_authenticated = True
        if not self._host.admits(self):
            self._closing = True
            self.transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        self._closing = True
        self._buffer.clear()
        self._host.service.disconnected(self)
        self._host.lost(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._turn()

    def eof_received(self) -> None:
        self._closing = True

    def resume_writing(self) -> None:
        self._plan_turn()

    def _turn(self) -> None:
        """Handle the received requests, as far as the limits allow."""
        self._turn_planned = False
        position = 0
        try:
            for _ in range(FRAMES_PER_TURN):
                if self._closing or self._is_full():
                    break
                if position > BYTES_PER_TURN:
                    self._plan_turn()
                    break
                end = self._frame_end(position)
                if end is None:
                    break
                message = bytes(memoryview(self._buffer)[position + 4 : end])
                position = end
                self._host.received += 1
                self._request_bytes = len(message)
                if self.requester.session_id:
                    answer(self._host.service, self, message)
                else:
                    self._host.service.connect(self, decode_connect(message))
                self._request_bytes = 0
            else:
                self._plan_turn()
        except MalformedRequest as error:
            logger.info("closed the connection of %s:%d: %s", self.address, self.port, error)
            self.abort()
        except Exception:
            logger.exception(
                "closed the connection of %s:%d: a bug in the coordinator", self.address, self.port
            )
            self.abort()
        if position:
            del self._buffer[:position]
        # Read nothing while the limits are exceeded.
        full = self._is_full() or self._turn_planned
        if full != self._paused and not self.transport.is_closing():
            self._paused = full
            (self.transport.pause_reading if full else self.transport.resume_reading)()

    def _frame_end(self, start: int) -> int | None:
        """Return the end of the frame at `start`, or None if it is incomplete."""
        if len(self._buffer) < start + 4:
            return None
        (length,) = INT.unpack_from(self._buffer, start)
        if not 0 < length <= MAX_BUFFER:
            if not self.requester.session_id and self._four_letter_word(
                bytes(self._buffer[start : start + 4])
            ):
                return None
            raise MalformedRequest(f"a frame of {length} bytes; {MAX_BUFFER} is the most")
        end = start + 4 + length
        return end if end <= len(self._buffer) else None

    def _four_letter_word(self, word: bytes) -> bool:
        answered = self._host.four_letter_word(word)
        if answered is None:
            return False
        self._closing = True
        self.transport.write(answered.encode())
        self.transport.close()
        return True

    # Called by the service

    def send(self, message: bytes) -> None:
        if self._host.commit.send(self, message):
            # A small reply may belong to a large write, which is in memory until it is on disk.
            size = len(message) + self._request_bytes
            self._waiting.append(size)
            self._waiting_bytes += size

    def close(self) -> None:
        """Handle no more requests, and close the connection after everything that was sent before."""
        self._closing = True
        self.closing_since = self.loop.time()
        self._host.commit.close(self)

    def abort(self) -> None:
        self._closing = True
        self.transport.abort()

    # Called by the commit

    def release(self, messages: list[bytes]) -> None:
        """Send `messages`, together with others of this loop iteration."""
        if self._waiting:
            self._waiting_bytes -= sum(self._waiting.popleft() for _ in messages)
        self._host.sent += len(messages)
        self._out += messages
        self._out_bytes += sum(map(len, messages))
        if not self._flush_planned:
            self._flush_planned = True
            self.loop.call_soon(self._flush)

    def hang_up(self) -> None:
        self._flush()
        self.transport.close()

    def _flush(self) -> None:
        self._flush_planned = False
        if self._out and not self.transport.is_closing():
            if self.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
                logger.warning("closed the connection of %s:%d: it does not read", self.address, self.port)
                self.abort()
            else:
                self.transport.write(b"".join(self._out))
        self._out.clear()
        self._out_bytes = 0
        if self._paused:
            self._plan_turn()

    # Limits

    def _is_full(self) -> bool:
        unsent = self._out_bytes + self._waiting_bytes + self.transport.get_write_buffer_size()
        return unsent > PAUSE_BYTES or len(self._waiting) > PAUSE_REPLIES

    def _plan_turn(self) -> None:
        if not self._turn_planned:
            self._turn_planned = True
            self.loop.call_soon(self._turn)
