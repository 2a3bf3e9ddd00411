"""A log directory of one broker, and what a test does to it."""

from collections.abc import Callable
from pathlib import Path

from headrace.protocol.ids import TopicPartition
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from headrace.storage.log import Log
from support.records import make_batch

US = Identity(1, "our-cluster")
CONFIG = LogConfig(segment_bytes=4096, index_interval_bytes=500)
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)
TOPIC_ID = bytes(range(16))


OpenDirectory = Callable[..., LogDirectory]


def fill(log: Log, batches: int = 10, *, size: int = 1000) -> None:
    for _ in range(batches):
        log.append(make_batch([bytes(size)]), leader_epoch=0)


def crash(directory: LogDirectory) -> None:
    directory.release()


def everything_in(path: Path) -> dict[str, tuple[int, bytes]]:
    """Name, time of the last change and content of everything below `path`, and of itself."""
    entries = [path, *sorted(path.rglob("*"))]
    return {
        str(entry): (entry.stat().st_mtime_ns, entry.read_bytes() if entry.is_file() else b"")
        for entry in entries
        if entry.name != ".lock"  # reading a file that is locked by this process lets go of the lock
    }


def flip_a_bit(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
