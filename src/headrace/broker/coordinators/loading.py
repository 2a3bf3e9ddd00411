"""Loading a coordinator: its partition of an internal topic is read from the beginning and applied.

It is done in slices, between which the broker answers others. Most records of `__consumer_offsets` are
commits that later ones replace; of these only the last of each key is decoded, after everything was read.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from headrace.broker.replicas.cold_reads import without_blocking
from headrace.coordinators.machine import NO_PRODUCER, CoordinatorMachine
from headrace.protocol.batch import BatchHeader, read_header
from headrace.protocol.control_records import ControlRecordType, decode_control_key
from headrace.protocol.fields import Buffer
from headrace.protocol.records import keys_and_values
from headrace.storage.log import Log

SLICE_BYTES: Final = 128 * 1024  # read at a time: a few milliseconds
SLICE_RECORDS: Final = 250  # decoded at a time: 2 to 3 milliseconds

KeyAndValue = tuple[bytes | None, bytes | None]


async def load(log: Log, machine: CoordinatorMachine[Any]) -> int:
    """Apply every record of the log and return their number. Nothing may be appended meanwhile."""
    loader = Loader(machine)
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        data = await without_blocking(partial(_read, log, offset, end))
        if not data:
            break
        for header, batch in batches(data):
            loader.take(header, batch)
            offset = header.next_offset
        await asyncio.sleep(0)
    for _ in loader.finish():
        await asyncio.sleep(0)
    return loader.count


async def _read(log: Log, offset: int, end: int, cached_only: bool) -> Buffer:
    return log.read(offset, SLICE_BYTES, max_offset=end, cached_only=cached_only)


class Loader:
    """Applies the records of a log to a machine, in the order of the log."""

    def __init__(self, machine: CoordinatorMachine[Any]) -> None:
        self.count = 0
        self._machine = machine
        self._last: dict[bytes, bytes | None] = {}  # values of keys whose earlier records do not matter
        self._open: dict[int, dict[bytes | None, bytes | None]] = {}  # open transactions, by producer id
        self._producers: dict[bytes | None, set[int]] = defaultdict(set)  # whose open transaction has a key

    def take(self, header: BatchHeader, batch: Buffer) -> None:
        """Apply the records of the next batch, or keep them until their transaction ends."""
        records = list(keys_and_values(batch, header))
        self.count += len(records)
        if not records:
            return  # compaction has removed all records of the batch and kept its header
        if header.is_control:
            marker = decode_control_key(records[0][0] or b"")
            records = self._end_transaction(header.producer_id)
            if marker is not ControlRecordType.COMMIT:
                return
        elif header.is_transactional:
            self._open.setdefault(header.producer_id, {}).update(records)
            for key, _ in records:
                self._producers[key].add(header.producer_id)
            return
        for key, value in records:
            if value is None:
                for producer_id in self._producers.pop(key, ()):
                    del self._open[producer_id][key]  # a transaction must not commit it later
            if key is not None and self._machine.is_replaced_by_later(key):
                self._last[key] = value
            else:
                self._apply(key, value)

    def _end_transaction(self, producer_id: int) -> list[KeyAndValue]:
        """Remove and return the records of the producer's open transaction."""
        records = list(self._open.pop(producer_id, {}).items())
        for key, _ in records:
            producers = self._producers[key]
            producers.discard(producer_id)
            if not producers:
                del self._producers[key]
        return records

    def finish(self) -> Iterator[None]:
        """Apply what is left; the caller may do something else whenever this yields."""
        for number, last in enumerate(self._last.items(), start=1):
            self._apply(*last)
            if number % SLICE_RECORDS == 0:
                yield
        for producer_id, records in self._open.items():
            for key, value in records.items():
                self._apply(key, value, producer_id)
            yield

    def _apply(self, key: bytes | None, value: bytes | None, producer_id: int = NO_PRODUCER) -> None:
        record = self._machine.decode(key, value)
        if record is not None:
            self._machine.apply(record, producer_id)


def batches(data: Buffer) -> Iterator[tuple[BatchHeader, Buffer]]:
    """Yield the batches in `data` with their headers."""
    view, position = memoryview(data), 0
    while position < len(view):
        header = read_header(view, position)
        yield header, view[position : position + header.size]
        position += header.size
