"""The reader of `_schemas`: takes fetched batches, and keeps the registry's state and its own position.

It does no I/O, so that gateways (in threads) and brokers (in an event loop) share it: they send the Fetch
requests, call `read_fetched`, which may run in any thread, and then `SchemasReader.apply`.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headrace.protocol.batch import HEADER_SIZE, read_batch, read_header
from headrace.protocol.errors import KafkaError
from headrace.protocol.fields import Buffer
from headrace.protocol.records import MAX_UNPACKED_BYTES, decode_batch
from headrace.registry.library import Library
from headrace.registry.record_json import BadRecord, decode, encode_key
from headrace.registry.records import Record, RecordKey
from headrace.registry.state import RegistryState

logger = logging.getLogger(__name__)

MAX_RECORDS: Final = 100_000  # of a batch: a few bytes can decompress to millions of records


class LogRecord(NamedTuple):
    """A record in the log; `decoded` is None if it is not one of a registry."""

    offset: int
    key: bytes | None
    value: bytes | None
    decoded: Record | None


class FetchedRecords(NamedTuple):
    """The records of a Fetch response, and the offset after its last complete batch; -1 if it has none."""

    records: Sequence[LogRecord]
    next_offset: int


def read_fetched(data: Buffer, max_unpacked_bytes: int = MAX_UNPACKED_BYTES) -> FetchedRecords:
    """Return the records of complete batches. Batches and records that cannot be read are skipped."""
    view, position, next_offset = memoryview(data), 0, -1
    records: list[LogRecord] = []
    while position + HEADER_SIZE <= len(view):
        header = read_header(view, position)
        if header.size < HEADER_SIZE:
            raise ValueError(f"a batch claims {header.size} bytes: the broker did not send record data")
        batch = view[position : position + header.size]
        if len(batch) < header.size:
            break
        position += header.size
        next_offset = max(next_offset, header.next_offset)
        if header.records_count > MAX_RECORDS:
            logger.warning("skipping the batch at offset %d: too many records", header.base_offset)
            continue
        try:
            if not read_batch(batch).is_control:
                records += [
                    LogRecord(each.offset, each.key, each.value, _decoded(each.offset, each.key, each.value))
                    for each in decode_batch(batch, header, max_bytes=max_unpacked_bytes)
                ]
        except KafkaError as error:
            logger.warning("skipping the batch at offset %d: %s", header.base_offset, error)
    return FetchedRecords(records, next_offset)


def _decoded(offset: int, key: bytes | None, value: bytes | None) -> Record | None:
    try:
        return decode(key, value)
    except BadRecord as error:
        logger.warning("the schemas topic, offset %d, is skipped: %s", offset, error)
        return None


class SchemasReader:
    """The state of a registry, and the offset up to which its topic has been read."""

    def __init__(self) -> None:
        self.start_over(None)

    def start_over(self, topic_id: bytes | None, position: int = 0) -> None:
        """Forget everything, to read another topic, or a log that does not continue what was read."""
        self.topic_id, self.position = topic_id, position
        self.state = RegistryState()
        self.library = Library(self.state)
        self.foreign_keys: dict[RecordKey, bytes] = {}  # keys that another registry encodes differently

    def apply(self, fetched: FetchedRecords, high_watermark: int) -> Iterator[LogRecord]:
        """Apply what was fetched from `position` on, and yield each record after it was applied."""
        began_at = self.position
        for record in fetched.records:
            if record.offset < began_at:
                continue  # a Fetch returns whole batches, which may begin before the requested offset
            if record.decoded is not None:
                assert record.key is not None, record
                if record.key != encode_key(record.decoded.key):
                    self.foreign_keys[record.decoded.key] = record.key
                inconsistency = self.state.apply(record.decoded)
                if inconsistency is not None:
                    logger.warning(
                        "the schemas topic, offset %d, is skipped: %s", record.offset, inconsistency
                    )
            self.position = record.offset + 1
            yield record
        # Compaction leaves gaps: a response without batches before the high watermark is one.
        next_offset = fetched.next_offset if fetched.next_offset > began_at else high_watermark
        self.position = max(self.position, next_offset)
