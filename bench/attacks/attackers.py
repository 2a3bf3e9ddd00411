"""What the attackers do. Each function runs in a process of its own, and returns what it did.

All are bounded: in time, in the number of connections at a time, and the floods in their total number.
"""

import itertools
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from typing import Final

from attacks.target import Target
from compare.drive import Endpoint, drive
from compare.raw import ProduceSource
from compare.wire import MIB, SIZE, make_batch, produce_request, request
from headrace.client.wire.connection import Address
from headrace.protocol.api import ApiKey
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest

GREEDY_CONNECTIONS: Final = 16
FLOOD_AT_A_TIME: Final = 64
FLOOD_TOTAL: Final = 200_000
DRIPPING: Final = 500  # connections of a slow loris
DRIP_S: Final = 0.1  # between two bytes of a connection
CONNECT_S: Final = 2.0
PAUSE_S: Final = 0.001
RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST, so that no port stays in TIME_WAIT

Attacker = Callable[[Target, float], str]


def greedy_producer(target: Target, seconds: float) -> str:
    """Many connections, each with five batches of 1 MiB in flight."""
    batch = make_batch(MIB - 1024)
    frame = produce_request(target.topic, batch)
    done = drive(
        Endpoint(target.plain),
        lambda _number: ProduceSource(frame, len(batch.data)),
        connections=GREEDY_CONNECTIONS,
        depth=5,
        seconds=seconds,
        max_bytes=1 << 40,
    )
    return f"{done.data_bytes / done.seconds / 1e6:,.0f} MB/s"


def greedy_small_batches(target: Target, seconds: float) -> str:
    """Many connections with many small requests in flight each."""
    batch = make_batch(1, record_size=100)
    frame = produce_request(target.topic, batch)
    done = drive(
        Endpoint(target.plain),
        lambda _number: ProduceSource(frame, len(batch.data)),
        connections=GREEDY_CONNECTIONS,
        depth=50,
        seconds=seconds,
        max_bytes=1 << 40,
    )
    return f"{done.requests / done.seconds:,.0f} requests/s"


# -- floods ---------------------------------------------------------------------------------------


def plain_flood(target: Target, seconds: float) -> str:
    """Open connections, and drop each as soon as it is made."""
    return _flood(target.plain, b"", seconds)


def tls_flood(target: Target, seconds: float) -> str:
    """Send a ClientHello on each connection, which costs the broker a signature, and drop it."""
    return _flood(target.tls, _client_hello(), seconds)


def _flood(address: Address, first_bytes: bytes, seconds: float) -> str:
    """Open connections in bursts, let the broker answer if there is something to answer, and reset them."""
    opened = 0
    began = time.perf_counter()
    while time.perf_counter() < began + seconds and opened < FLOOD_TOTAL:
        burst = _connect(address, FLOOD_AT_A_TIME)
        opened += len(burst)
        for each in burst:
            _exchange(each, first_bytes)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            each.close()
    return f"{opened / (time.perf_counter() - began):,.0f} connections/s"


def _connect(address: Address, count: int) -> list[socket.socket]:
    """Return new connections; fewer if the broker's queue of new connections is full."""
    made: list[socket.socket] = []
    try:
        while len(made) < count:
            made.append(socket.create_connection(address, CONNECT_S))
    except OSError:
        time.sleep(PAUSE_S)
    return made


def _exchange(connected: socket.socket, first_bytes: bytes) -> None:
    if first_bytes:
        try:
            connected.sendall(first_bytes)
            connected.recv(1)
        except OSError:
            return  # the broker may drop any of these connections


def _client_hello() -> bytes:
    """Return the first message of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake needs the server's answer")


# -- slow loris -----------------------------------------------------------------------------------


def loris_before_frame(target: Target, seconds: float) -> str:
    """Drip the size of a frame, and begin with a new connection once it is complete."""
    return _drip(target.plain, seconds, begin=b"", drops=SIZE.pack(1000)[:3])


def loris_in_frame(target: Target, seconds: float) -> str:
    """Announce a request of a megabyte, and drip its bytes."""
    return _drip(target.plain, seconds, begin=SIZE.pack(MIB), drops=bytes(100_000))


def loris_before_handshake(target: Target, seconds: float) -> str:
    """Drip the first message of a TLS client."""
    return _drip(target.tls, seconds, begin=b"", drops=_client_hello()[:-1])


def loris_before_sasl(target: Target, seconds: float) -> str:
    """Ask for a SASL mechanism, and drip the message that would authenticate."""
    begin = request(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"))
    return _drip(target.sasl, seconds, begin=begin + SIZE.pack(100_000), drops=bytes(90_000))


def _drip(address: Address, seconds: float, *, begin: bytes, drops: bytes) -> str:
    """Keep DRIPPING connections open; each sends a byte of `drops` every DRIP_S, evenly spread in time."""
    open_: dict[int, _Dripping] = {}
    sent = reopened = 0
    began = time.perf_counter()
    try:
        for number in _evenly(DRIPPING, DRIP_S, began + seconds):
            if number not in open_:
                made = _connect(address, 1)
                if made:
                    open_[number] = _Dripping(made[0], begin, drops)
                    reopened += 1
            elif open_[number].drip():
                sent += 1
            else:
                open_.pop(number).close()
    finally:
        for each in open_.values():
            each.close()
    rate = sent / (time.perf_counter() - began)
    return f"{len(open_)} connections, {rate:,.0f} bytes/s, {reopened - len(open_)} were reopened"


def _evenly(count: int, period_s: float, end: float) -> Iterator[int]:
    """Yield 0 to count-1 over and over, one round in each period, until `end`."""
    start = time.perf_counter()
    for turn in itertools.count():
        wait = start + turn * period_s / count - time.perf_counter()
        if wait > PAUSE_S:
            time.sleep(wait)
        if time.perf_counter() > end:
            return
        yield turn % count


class _Dripping:
    def __init__(self, connected: socket.socket, begin: bytes, drops: bytes) -> None:
        self._socket = connected
        self._drops = iter(drops)
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.send(begin)

    def drip(self) -> bool:
        """Send the next byte; return False if there is none, or the broker has closed the connection."""
        drop = next(self._drops, None)
        if drop is None:
            return False
        try:
            return self._socket.send(bytes([drop])) == 1
        except OSError:
            return False

    def close(self) -> None:
        self._socket.close()
