"""What was promised: every acknowledged record with its place, everything processed, every commit."""

import threading
import time
from collections import defaultdict
from typing import NamedTuple


class Record(NamedTuple):
    """The `number`th record of a key; numbers of a key have no gaps."""

    key: str
    number: int

    @classmethod
    def of(cls, key: bytes | None, value: bytes | None) -> "Record":
        assert key is not None, value
        assert value is not None, key
        name, _, number = value.decode().partition(" ")[0].rpartition(":")
        assert name == key.decode(), (key, value)
        return cls(name, int(number))

    @property
    def value(self) -> bytes:
        return f"{self.key}:{self.number} {'.' * 80}".encode()


class Slot(NamedTuple):
    partition: int
    offset: int


class Ledger:
    """Told by many threads; what is in it was promised to a client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent: dict[str, int] = {}  # key to how many
        self.acknowledged: list[tuple[Slot, Record]] = []
        self.somewhere: list[Record] = []  # acknowledged by a later one's success, so without a place
        self.processed: dict[Slot, Record] = {}
        self.again = 0  # processed more than once: groups promise at least once
        self.failed: list[str] = []
        self.problems: list[str] = []  # what may not be, seen while it happened
        self._committed: dict[int, int] = defaultdict(int)
        self._last_ack: dict[int, float] = {}
        self.pauses: dict[int, float] = defaultdict(float)  # the longest, by partition
        self._refused: dict[str, int] = defaultdict(int)

    def acknowledge(self, slot: Slot, record: Record) -> None:
        now = time.monotonic()
        with self._lock:
            self.acknowledged.append((slot, record))
            last = self._last_ack.get(slot.partition, now)
            self.pauses[slot.partition] = max(self.pauses[slot.partition], now - last)
            self._last_ack[slot.partition] = now

    def acknowledge_somewhere(self, record: Record) -> None:
        with self._lock:
            self.somewhere.append(record)

    def fail(self, record: Record, why: object) -> None:
        with self._lock:
            self.failed.append(f"{record}: {why}")

    def process(self, slot: Slot, record: Record) -> None:
        with self._lock:
            before = self.processed.setdefault(slot, record)
            if before != record:
                self.problems.append(f"{slot} was read as {before}, and later as {record}")
            self.again += before is not record

    def commit(self, partition: int, offset: int) -> None:
        with self._lock:
            self._committed[partition] = max(self._committed[partition], offset)

    def committed(self) -> dict[int, int]:
        """How far the group has come, as it was told: no later answer may be less."""
        with self._lock:
            return dict(self._committed)

    def saw_committed(self, partition: int, offset: int, floor: dict[int, int], who: str) -> None:
        """An answer of the group's coordinator, to a question asked when `floor` was committed."""
        if partition in floor and offset < floor[partition]:
            with self._lock:
                self.problems.append(
                    f"{who} found partition {partition} committed up to {offset}, after {floor[partition]}"
                )

    def refuse(self, why: str) -> None:
        """Something a client had to try again; counted, for the curious."""
        with self._lock:
            self._refused[why] += 1

    @property
    def refusals(self) -> dict[str, int]:
        with self._lock:
            return dict(self._refused)

    def counts(self) -> dict[int, int]:
        """How many records of each partition are acknowledged."""
        with self._lock:
            counts: dict[int, int] = defaultdict(int)
            for slot, _ in self.acknowledged:
                counts[slot.partition] += 1
            return counts

    @property
    def longest_pause_s(self) -> float:
        with self._lock:
            return max(self.pauses.values(), default=0.0)
