"""A real broker whose event loop is measured, and what one frame costs it."""

import json
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.protocol.schema.api_versions import ApiVersionsRequest
from wire.process import BrokerProcess
from wire.raw import RawClient, frame_of

ANSWER_S: Final = 60.0
_MEASURED: Final = Path(__file__).parent / "measured.py"
_READ_AT_ONCE: Final = 256 * 1024
_LAST: Final = 2**31 - 1  # the correlation id of the request that ends a measurement


@dataclass(frozen=True, slots=True)
class Cost:
    """What a broker spent on one request, in CPU time."""

    sent_bytes: int
    received_bytes: int
    hold_s: float  # the longest time that the event loop did nothing else
    cpu_s: float  # all threads
    rss_bytes: int  # what the process has grown by, once the connection is closed


class MeasuredBroker(BrokerProcess):
    """`headrace up` with a probe on its event loop."""

    def __init__(self, root: Path, settings: dict[str, str] | None = None) -> None:
        super().__init__(root, settings)
        self._probe_path = root / "probe"
        self._probe: socket.socket | None = None
        self._inside = [sys.executable, str(_MEASURED), str(self._probe_path)]

    def start(self) -> None:
        super().start()
        self._probe = socket.socket(socket.AF_UNIX)
        self._probe.settimeout(ANSWER_S)
        self._probe.connect(str(self._probe_path))

    def kill(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None
        super().kill()

    def figures(self) -> dict[str, float]:
        """The probe's figures since the last call."""
        assert self._probe is not None, "the broker is not running"
        self._probe.sendall(b"?")
        said = b""
        while not said.endswith(b"\n"):
            said += self._probe.recv(4096)
        figures: dict[str, float] = json.loads(said)
        return figures

    def cost_of(self, frame: bytes) -> Cost:
        """What a request costs until it is answered or its connection is closed."""
        self.figures()
        before = self.rss_bytes
        with RawClient(self.bootstrap) as client:
            received = _answer(client.socket, frame)
        figures = self.figures()  # answered after the connection's end has been seen
        return Cost(
            sent_bytes=len(frame),
            received_bytes=received,
            hold_s=figures["hold_s"],
            cpu_s=figures["process_s"],
            rss_bytes=self.rss_bytes - before,
        )


def _answer(to: socket.socket, frame: bytes) -> int:
    """Send a request while reading: how many bytes of an answer came.

    Some requests have no answer. One that always has follows, and answers come in order.
    """
    to.settimeout(ANSWER_S)
    sender = threading.Thread(target=_send, args=(to, frame + frame_of(ApiVersionsRequest(), 0, _LAST)))
    sender.start()
    received = 0
    try:
        while True:
            size, correlation_id = _skip_frame(to)
            if correlation_id == _LAST:
                break
            received += size
    except ConnectionError:
        return received  # too large, or malformed: that is an answer, too
    finally:
        with suppress(OSError):  # the broker may have closed it
            to.shutdown(socket.SHUT_RDWR)
        sender.join()
    return received


def _send(to: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # the reader hears of it
        to.sendall(data)


def _skip_frame(of: socket.socket) -> tuple[int, int]:
    """The size and the correlation id of the next response, which is not kept."""
    head = _exactly(of, 8)
    size, left = 4 + int.from_bytes(head[:4], "big"), int.from_bytes(head[:4], "big") - 4
    while left:
        left -= len(_some(of, min(left, _READ_AT_ONCE)))
    return size, int.from_bytes(head[4:], "big")


def _exactly(of: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += _some(of, size - len(data))
    return data


def _some(of: socket.socket, size: int) -> bytes:
    data = of.recv(size)
    if not data:
        raise ConnectionError("the broker closed the connection")
    return data
