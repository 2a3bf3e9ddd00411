"""Reading a partition of `__consumer_offsets` from its beginning: how a coordinator comes to know its groups.

It is done in slices, between which the broker answers others. Most of the records are commits that later
ones have overtaken; only the last of each key is decoded, when everything has been read.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from headrace.group.coordinator import GroupCoordinator
from headrace.group.records import decode_record, is_offset_commit
from headrace.protocol.batch import BatchHeader, read_header
from headrace.protocol.control_records import ControlRecordType, decode_control_key
from headrace.protocol.fields import Buffer
from headrace.protocol.records import keys_and_values
from headrace.storage.log import Log

SLICE_BYTES: Final = 128 * 1024  # read at a time: a few milliseconds
SLICE_COMMITS: Final = 1000  # decoded at a time

KeyAndValue = tuple[bytes | None, bytes | None]


async def load(log: Log, coordinator: GroupCoordinator) -> int:
    """Let the coordinator know all that is in the log; the number of records that were read.

    Nothing may be appended meanwhile.
    """
    loader = _Loader(coordinator)
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        data = log.read(offset, SLICE_BYTES, max_offset=end)
        if not data:
            break
        for header, batch in _batches(data):
            loader.take(header, batch)
            offset = header.next_offset
        await asyncio.sleep(0)
    for _ in loader.finish():
        await asyncio.sleep(0)
    return loader.count


class _Loader:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self.count = 0
        self._coordinator = coordinator
        self._commits: dict[bytes, bytes | None] = {}  # the last of each key
        self._open: dict[int, list[KeyAndValue]] = {}  # transactions, by producer id

    def take(self, header: BatchHeader, batch: Buffer) -> None:
        records = list(keys_and_values(batch, header))
        self.count += len(records)
        if not records:
            return  # compaction has left the frame of a batch
        if header.is_control:
            marker = decode_control_key(records[0][0] or b"")
            records = self._open.pop(header.producer_id, [])
            if marker is not ControlRecordType.COMMIT:
                return
        elif header.is_transactional:
            self._open.setdefault(header.producer_id, []).extend(records)
            return
        for key, value in records:
            if key is not None and is_offset_commit(key):
                self._commits[key] = value
            else:
                self._apply(key, value)

    def finish(self) -> Iterator[None]:
        """Apply the commits; the caller may do something else whenever this yields."""
        for number, (key, value) in enumerate(self._commits.items(), start=1):
            self._apply(key, value)
            if number % SLICE_COMMITS == 0:
                yield

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        record = decode_record(key, value)
        if record is not None:
            self._coordinator.apply(record)


def _batches(data: Buffer) -> Iterator[tuple[BatchHeader, Buffer]]:
    view, position = memoryview(data), 0
    while position < len(view):
        header = read_header(view, position)
        yield header, view[position : position + header.size]
        position += header.size
