"""One client's socket: frames in, messages out, and bounds on both.

A client that sends rubbish loses its connection and nobody else notices. One that does not read its replies
is not read from either, and if events pile up for it all the same it is dropped.
"""

import asyncio
import logging
from collections import deque
from ipaddress import ip_address
from typing import Final, Protocol, cast

from headrace.coordination.embedded.acl import Identity
from headrace.coordination.embedded.commit import GroupCommit
from headrace.coordination.embedded.decide import Requester
from headrace.coordination.embedded.errors import MalformedRequest
from headrace.coordination.embedded.handlers import answer
from headrace.coordination.embedded.jute import INT, MAX_BUFFER
from headrace.coordination.embedded.requests import decode_connect
from headrace.coordination.embedded.service import Service

FRAMES_PER_TURN: Final = 100  # then the other connections have theirs
PAUSE_REPLIES: Final = 1_000  # waiting for the disk
PAUSE_BYTES: Final = 1 << 20  # waiting for the disk or the client; a reply more may come on top
MAX_UNSENT_BYTES: Final = 16 << 20  # of events, since replies stop long before

logger = logging.getLogger(__name__)


class Host(Protocol):
    """What a connection wants of its server."""

    service: Service
    commit: GroupCommit
    received: int
    sent: int

    def admits(self, connection: "Connection") -> bool: ...

    def lost(self, connection: "Connection") -> None: ...

    def four_letter_word(self, word: bytes) -> str | None: ...


class Connection(asyncio.Protocol):
    def __init__(self, host: Host) -> None:
        self._host = host
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._waiting: deque[int] = deque()  # the sizes of messages that the disk holds back
        self._waiting_bytes = 0
        self._request_bytes = 0  # of the request that is being answered
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
        self.received = 0
        self.sent = 0

    # The event loop's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are none of asyncio's classes
        self.address, self.port = transport.get_extra_info("peername")[:2]
        self.requester = Requester(0, (Identity("ip", _plain(self.address)),))
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
        """Answer what has come in, as far as the bounds allow."""
        self._turn_planned = False
        position = 0
        try:
            for _ in range(FRAMES_PER_TURN):
                if self._closing or self._is_full():
                    break
                end = self._frame_end(position)
                if end is None:
                    break
                message = bytes(memoryview(self._buffer)[position + 4 : end])
                position = end
                self._received(message)
            else:
                self._plan_turn()
        except MalformedRequest as error:
            logger.info("hung up on %s:%d: %s", self.address, self.port, error)
            self.abort()
        except Exception:
            logger.exception("hung up on %s:%d: a bug in the coordinator", self.address, self.port)
            self.abort()
        if position:
            del self._buffer[:position]
        self._pause_or_resume()

    def _frame_end(self, start: int) -> int | None:
        """Where the frame at `start` ends, or None if it has not all come."""
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

    def _received(self, message: bytes) -> None:
        self.received += 1
        self._host.received += 1
        self._request_bytes = len(message)
        if self.requester.session_id:
            answer(self._host.service, self, message)
        else:
            self._host.service.connect(self, decode_connect(message))
        self._request_bytes = 0

    def _four_letter_word(self, word: bytes) -> bool:
        answered = self._host.four_letter_word(word)
        if answered is None:
            return False
        self._closing = True
        self.transport.write(answered.encode())
        self.transport.close()
        return True

    # The service's side

    def send(self, message: bytes) -> None:
        if self._host.commit.send(self, message):
            # A small reply may stand for a large write, which is in memory until the disk has it.
            size = len(message) + self._request_bytes
            self._waiting.append(size)
            self._waiting_bytes += size

    def close(self) -> None:
        """Answer nothing more, and hang up once everything sent before has left."""
        self._closing = True
        self.closing_since = self.loop.time()
        self._host.commit.close(self)

    def abort(self) -> None:
        self._closing = True
        self.transport.abort()

    # The commit's side

    def release(self, messages: list[bytes]) -> None:
        """Put `messages` on the wire, together with whatever else this turn of the loop brings."""
        if self._waiting:
            self._waiting_bytes -= sum(self._waiting.popleft() for _ in messages)
        self.sent += len(messages)
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
                logger.warning("dropped %s:%d: it does not read", self.address, self.port)
                self.abort()
            else:
                self.transport.write(b"".join(self._out))
        self._out.clear()
        self._out_bytes = 0
        if self._paused:
            self._plan_turn()

    # Bounds

    def _is_full(self) -> bool:
        unsent = self._out_bytes + self._waiting_bytes + self.transport.get_write_buffer_size()
        return unsent > PAUSE_BYTES or len(self._waiting) > PAUSE_REPLIES

    def _pause_or_resume(self) -> None:
        """Stop reading while there is more to answer than the bounds allow."""
        full = self._is_full() or self._turn_planned
        if full != self._paused and not self.transport.is_closing():
            self._paused = full
            (self.transport.pause_reading if full else self.transport.resume_reading)()

    def _plan_turn(self) -> None:
        if not self._turn_planned:
            self._turn_planned = True
            self.loop.call_soon(self._turn)


def _plain(address: str) -> str:
    """An IPv4 address that came in through an IPv6 socket, as IPv4."""
    try:
        mapped = getattr(ip_address(address), "ipv4_mapped", None)
    except ValueError:
        return address
    return str(mapped) if mapped else address
