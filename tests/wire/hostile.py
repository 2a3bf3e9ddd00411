"""Clients that nobody invited, by seed, and one that only wants to do its work meanwhile."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from headrace.protocol.api import request_class
from headrace.protocol.compiled.structs import all_defaults
from headrace.protocol.schema.index import ApiKey
from support.records import make_batch
from wire.every_request import ADVERTISED, REQUESTS, Target
from wire.process import BrokerProcess
from wire.raw import TIMEOUT_S, RawClient, frame_of
from wire.requests import create_topic, fetch, produce, records_in

# A flipped bit can ask them for thousands of partitions, which takes any broker a while.
NOT_MUTATED: Final = {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS}
INTERESTING: Final = (
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff" * 9,
)


def valid_frames(client: RawClient) -> list[bytes]:
    """A frame of every API and version, about a topic of their own, and one with nothing in it."""
    target = Target(client)
    wanted = [(key, version) for key, version in ADVERTISED if key not in NOT_MUTATED]
    frames = [frame_of(REQUESTS[key](target, version), version) for key, version in wanted]
    return frames + [frame_of(all_defaults(request_class(key)), version) for key, version in wanted]


def mutants(frames: list[bytes], chance: random.Random) -> Iterator[bytes]:
    """Valid frames with a few bytes changed, inserted, removed or cut off; for ever. The size stays true."""
    while True:
        body = bytearray(chance.choice(frames)[4:])
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(body) + 1)
            match chance.randrange(5):
                case 0 if at < len(body):
                    body[at] ^= 1 << chance.randrange(8)
                case 1:
                    body[at : at + 4] = chance.choice(INTERESTING)
                case 2:
                    body[at:at] = chance.randbytes(chance.randint(1, 8))
                case 3:
                    del body[at : at + chance.randint(1, 8)]
                case _:
                    del body[max(8, at) :]
        yield struct.pack(">i", len(body)) + body


def garbage(chance: random.Random) -> Iterator[bytes]:
    """Bytes that only look like a frame, some of them with a key and a version that exist."""
    while True:
        key, version = chance.choice(ADVERTISED)
        body = chance.randbytes(chance.randint(0, 200))
        header = struct.pack(">hhih", key, version, 1, -1) if chance.random() < 0.7 else b""
        yield struct.pack(">i", len(header) + len(body)) + header + body


def visit(broker: BrokerProcess, data: bytes, *, half_close: bool = False) -> None:
    """Send something, take what comes at once, and leave."""
    with RawClient(broker.bootstrap) as client, suppress(ConnectionError, TimeoutError):
        client.socket.sendall(data)
        if half_close:
            client.socket.shutdown(socket.SHUT_WR)
        client.socket.settimeout(0.002)
        client.socket.recv(4096)


class Bystander:
    """Writes and reads back, again and again, while the block runs; notes what goes wrong or is slow."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.rounds = 0
        self.slowest_s = 0.0
        self.trouble: Exception | None = None

    def __enter__(self) -> Self:
        with RawClient(self._broker.bootstrap) as client:
            create_topic(client, "bystander")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._one_more_round()
        self._stop.set()
        self._thread.join()

    def _one_more_round(self) -> None:
        wanted, deadline = self.rounds + 2, time.monotonic() + TIMEOUT_S
        while self.rounds < wanted and self.trouble is None and time.monotonic() < deadline:
            time.sleep(0.01)

    def _run(self) -> None:
        try:
            with RawClient(self._broker.bootstrap) as client:
                while not self._stop.wait(0.001):
                    began = time.monotonic()
                    self._round(client)
                    self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        except Exception as error:  # noqa: BLE001 (the test that started it tells)
            self.trouble = error

    def _round(self, client: RawClient) -> None:
        value = b"round %d" % self.rounds
        answer = produce(client, "bystander", make_batch([value]))
        assert (answer.error_code, answer.base_offset) == (0, self.rounds), answer
        (record,) = records_in(fetch(client, "bystander", self.rounds))
        assert record.value == value, record
        self.rounds += 1
