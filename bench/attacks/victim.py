"""The second client: sends one small request at a time, and notes how long each response takes."""

import os
import socket
import time
from collections import defaultdict
from contextlib import closing
from typing import Final

from attacks.figures import Latencies, Latency
from compare.wire import ERROR_AT, SIZE, FetchTemplate, make_batch, produce_request
from headrace.client.wire.connection import Address
from headrace.protocol.api import ApiKey

PERIOD_S: Final = 0.005  # between the starts of two requests, unless a response takes longer
ANSWER_S: Final = 30.0
_PROCESS_CLOCK: Final = 2  # with a process id, the clock of its CPU time: see clock_getcpuclockid(3)


class Victim:
    """A client with one connection for each kind of request, so that none waits for another."""

    def __init__(self, address: Address, topic: bytes, broker: int) -> None:
        self._cpu_clock = (~broker << 3) | _PROCESS_CLOCK
        batch = make_batch(1, record_size=100)
        self._kinds = {
            "produce, acks=1": (ApiKey.PRODUCE, produce_request(topic, batch, acks=1)),
            "produce, acks=all": (ApiKey.PRODUCE, produce_request(topic, batch, acks=-1)),
            "fetch": (ApiKey.FETCH, FetchTemplate(topic, 1024, max_wait_ms=500).at(0)),
        }
        self._sockets = {kind: socket.create_connection(address, ANSWER_S) for kind in self._kinds}
        for each in self._sockets.values():
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ask("produce, acks=1")  # there is a record to fetch

    def close(self) -> None:
        for each in self._sockets.values():
            each.close()

    def measure(self, seconds: float) -> Latencies:
        """Send requests of all kinds in turn for that long."""
        found = defaultdict(list)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for kind in self._kinds:
                cpu, began = time.clock_gettime(self._cpu_clock), time.perf_counter()
                self._ask(kind)
                took = time.perf_counter() - began
                used = time.clock_gettime(self._cpu_clock) - cpu
                found[kind].append(Latency(took * 1000, used * 1000))
                time.sleep(max(0.0, PERIOD_S - took))
        return found

    def _ask(self, kind: str) -> None:
        key, frame = self._kinds[kind]
        self._sockets[kind].sendall(frame)
        response = self._receive(self._sockets[kind])
        at = ERROR_AT[key]
        error = int.from_bytes(response[at : at + 2], "big")
        assert not error, f"{kind} was answered with error {error}"

    @staticmethod
    def _receive(connected: socket.socket) -> bytes:
        received = b""
        while len(received) < SIZE.size or len(received) < SIZE.size + SIZE.unpack_from(received)[0]:
            chunk = connected.recv(64 * 1024)
            if not chunk:
                raise ConnectionError("the broker closed the victim's connection")
            received += chunk
        return received[SIZE.size :]


def victim(address: Address, topic: bytes, broker: int) -> "closing[Victim]":
    """Connect a victim to the broker, whose process id is `broker`."""
    return closing(Victim(address, topic, broker))


def run_first() -> bool:
    """Have this process run as soon as a response arrives, whatever else runs; return whether that worked."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        return False
    return True
