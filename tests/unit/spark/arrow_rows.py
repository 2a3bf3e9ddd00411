"""Rows as Spark hands them over, and the records they become: for tests of the way between."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from headrace.protocol.batch import build_batch, read_batch
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, decode_batch
from headrace.spark.rows import RowEncoder
from headrace.tables.reader.cluster import ClusterConnections

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it loads its schemas the way of Python 3.8
    from kafka.partitioner.default import murmur2

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "headers": HEADERS,
}
ROOM: Final = 4096  # of a batch, unless a test says otherwise


class KnownTopics(ClusterConnections):
    """A cluster whose topics are known beforehand: nobody is asked."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__("127.0.0.1:1")
        self._sizes = sizes

    def topics(self, names: Iterable[str] | None = None) -> dict[str, list[int]]:
        wanted = self._sizes if names is None else [name for name in names if name in self._sizes]
        return {name: list(range(self._sizes[name])) for name in wanted}


def batch_of(types: Mapping[str, pa.DataType] | None = None, **columns: Sequence[Any]) -> pa.RecordBatch:
    """Columns by their names; a header is a pair. `types` are those that differ from Spark's usual ones."""
    kinds = SCHEMA | dict(types or {})
    arrays = {
        name: pa.array(_structs(values) if name == "headers" else values, kinds[name])
        for name, values in columns.items()
    }
    return pa.RecordBatch.from_pydict(arrays)


def _structs(rows: Sequence[Any]) -> list[Any]:
    return [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]


def encoder(
    sizes: Mapping[str, int], *, topic: str | None = None, room: int = ROOM, turn: int = 0
) -> RowEncoder:
    return RowEncoder(KnownTopics(sizes), topic, room, turn=turn, timeout_s=0.0)


def decoded(pieces: Iterable[tuple[TopicPartition, Any, int]]) -> dict[TopicPartition, list[list[Record]]]:
    """The records of each piece as its readers will see them, by partition, in the order of the pieces."""
    found: dict[TopicPartition, list[list[Record]]] = {}
    for place, body, count in pieces:
        batch = build_batch(
            body,
            base_offset=0,
            last_offset_delta=count - 1,
            records_count=count,
            base_timestamp=0,
            max_timestamp=0,
        )
        records = list(decode_batch(batch, read_batch(batch)))
        assert [each.offset for each in records] == list(range(count))
        found.setdefault(place, []).append(records)
    return found


def contents(records: Iterable[Record]) -> list[tuple[bytes | None, bytes | None, list[Any]]]:
    return [(each.key, each.value, list(each.headers)) for each in records]


def all_of(pieces: Iterable[tuple[TopicPartition, Any, int]]) -> dict[TopicPartition, list[Any]]:
    """The contents of each partition's records, one after the other."""
    return {
        place: contents(record for batch in batches for record in batch)
        for place, batches in decoded(pieces).items()
    }


def choice_of_kafka_python(key: bytes, partitions: int) -> int:
    """The partition to which another client sends a record with this key."""
    return (int(murmur2(key)) & 0x7FFFFFFF) % partitions
