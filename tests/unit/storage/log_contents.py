"""Logs to append to, and what a test reads from them."""

from collections.abc import Callable

from headrace.protocol.batch import read_batch
from headrace.storage.log import Log
from support.logs import read_all
from support.records import make_batch

OpenLog = Callable[..., Log]


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def offsets(log: Log) -> list[tuple[int, int]]:
    return [(header.base_offset, header.last_offset) for header in map(read_batch, read_all(log))]


def follow(log: Log, *spans: tuple[int, int]) -> None:
    """Append batches of these first and last offsets, as a follower does."""
    for first, last in spans:
        log.append_as_follower(make_batch(last - first + 1, base_offset=first, leader_epoch=0))


def in_txn(producer_id: int, sequence: int) -> bytearray:
    return make_batch(
        2, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
    )
