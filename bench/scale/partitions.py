"""What many partitions cost one broker: creation, memory, idle CPU, restart, Metadata, deletion."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Producer

from compare import process
from compare.servers import Server
from compare.wire import ask, make_batch, produce_request, topic_id
from headrace.client.wire.connection import Address
from headrace.client.wire.requests import metadata_request

PER_TOPIC: Final = 1000
IDLE_S: Final = 10.0
SETTLED_S: Final = 3.0
RESTART_S: Final = 180.0
_PAUSE_S: Final = 0.001  # between two requests of the client whose delays are measured


class Delays:
    """A producer next to the measured work: the longest time that one of its requests took."""

    def __init__(self, address: Address, topic: bytes) -> None:
        self.longest_s = 0.0
        self._request = produce_request(topic, make_batch(100, record_size=50))
        self._address = address
        self._is_over = threading.Event()

    def run(self) -> None:
        answer = bytearray(4096)
        with socket.create_connection(self._address) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self._is_over.wait(_PAUSE_S):
                began = time.perf_counter()
                connection.sendall(self._request)
                connection.recv_into(answer)
                self.longest_s = max(self.longest_s, time.perf_counter() - began)

    def stop(self) -> None:
        self._is_over.set()


@contextmanager
def delays(server: Server) -> Iterator[Delays]:
    server.create_topic("beside")
    measured = Delays(server.address, topic_id(server.address, "beside"))
    thread = threading.Thread(target=measured.run)
    thread.start()
    try:
        yield measured
    finally:
        measured.stop()
        thread.join()


def measure(server: Server, partitions: int) -> dict[str, float]:
    """Start the server, have it live with so many partitions, restart it; return the figures."""
    names = [f"scale-{number}" for number in range(partitions // PER_TOPIC)]
    with server:
        time.sleep(SETTLED_S)
        figures = _create(server, names)
        _write_once(server, names)
        time.sleep(SETTLED_S)
        figures["idle CPU %"] = _idle_percent(server)
        figures["descriptors/partition"] = process.descriptors(server.pid) / (len(names) * PER_TOPIC)
    with server:
        figures["restart s"] = server.seconds_to_metadata
        began = time.perf_counter()
        for name in names:
            topic_id(server.address, name, timeout_s=RESTART_S)  # waits for leaders
        figures["restart s"] += time.perf_counter() - began
        figures["Metadata s"] = _seconds_of_metadata(server.address)
        began = time.perf_counter()
        server.delete_topic(names[0])
        figures["delete s"] = time.perf_counter() - began
    return figures


def _create(server: Server, names: list[str]) -> dict[str, float]:
    before = server.resident_bytes()
    with delays(server) as beside:
        began = time.perf_counter()
        for name in names:
            server.create_topic(name, partitions=PER_TOPIC)
        elapsed = time.perf_counter() - began
    time.sleep(SETTLED_S)
    grown = server.resident_bytes() - before
    return {
        "create s": elapsed,
        "longest delay ms": beside.longest_s * 1000,
        "KiB/partition": grown / 1024 / (len(names) * PER_TOPIC),
    }


def _write_once(server: Server, names: list[str]) -> None:
    """Write a record to every partition: a log that was never written to has nothing to open."""
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 0, "log_level": 0})
    for name in names:
        for partition in range(PER_TOPIC):
            producer.produce(name, b"x", partition=partition)
        producer.flush()


def _idle_percent(server: Server) -> float:
    before = server.cpu_seconds()
    time.sleep(IDLE_S)
    return (server.cpu_seconds() - before) / IDLE_S * 100


def _seconds_of_metadata(address: Address) -> float:
    began = time.perf_counter()
    ask(address, metadata_request(None))
    return time.perf_counter() - began
