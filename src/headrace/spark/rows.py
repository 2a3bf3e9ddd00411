"""Rows of Arrow batches, sorted by partition and encoded as records."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition
from headrace.spark import encode
from headrace.spark.errors import SparkError
from headrace.tables.reader.cluster import NEW_TOPIC_S, ClusterConnections
from headrace.tables.reader.compiled import Bytes, Ints

METADATA_MAX_AGE_S: Final = 300.0  # as Kafka's producer: metadata.max.age.ms
_UNCHOSEN: Final = -1
_PLAIN: Final = (pa.binary(), pa.string())


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, as Spark's buffers are: numba would compile again for writable arrays."""
    array.flags.writeable = False
    return array


_NO_BYTES: Final = _read_only(np.zeros(0, np.uint8))


class RowEncoder:
    """Turns rows into encoded records: pieces of a partition, their bytes, and how many records they have."""

    def __init__(
        self,
        cluster: ClusterConnections,
        topic: str | None,
        batch_bytes: int,
        *,
        turn: int,
        timeout_s: float = NEW_TOPIC_S,
    ) -> None:
        self._cluster = cluster
        self._timeout_s = timeout_s
        self._topic = topic
        self._batch_bytes = batch_bytes
        self._turn = turn  # which partition gets the next rows without a key
        self._partitions: dict[str, int] = {}

    def encoded(self, batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, Buffer, int]]:
        rows = batch.num_rows
        if not rows:
            return
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys, values = _column(columns.get("key"), rows), _column(columns["value"], rows)
        headers = _headers(columns.get("headers"), rows)
        for topic, chosen in self._by_topic(columns.get("topic"), rows):
            partitions = self._choose(topic, chosen, columns.get("partition"), keys, rows)
            for partition in np.unique(partitions[chosen]):
                order = chosen[partitions[chosen] == partition]
                topic_partition = TopicPartition(topic, int(partition))
                yield from self._records(topic_partition, order.astype(np.int32), keys, values, headers)

    def _by_topic(self, column: pa.Array | None, rows: int) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield topics and their rows; the option `topic` overrides the column, as in Spark's sink."""
        if self._topic is not None:
            yield self._topic, np.arange(rows)
            return
        assert column is not None, "the schema has been checked"
        if column.null_count:
            raise SparkError("a row has no topic: fill the column 'topic', or set the option topic")
        coded = column.dictionary_encode()
        indices = np.asarray(coded.indices)
        for index, topic in enumerate(coded.dictionary.to_pylist()):
            yield topic, np.flatnonzero(indices == index)

    def _choose(
        self, topic: str, chosen: NDArray[np.int64], column: pa.Array | None, keys: encode.Column, rows: int
    ) -> Ints:
        count = self._count(topic)
        partitions: Ints = np.full(rows, _UNCHOSEN, np.int32)
        if column is not None:
            # The numbers of null rows are arbitrary.
            every = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + rows]
            numbers, present = every[chosen], _present(column)[chosen]
            if np.any(numbers[present != 0] >= count):  # perhaps partitions were added
                self._cluster.forget_partition_counts()
                self._partitions.clear()
                count = self._count(topic)
            wrong = numbers[(present != 0) & ((numbers < 0) | (numbers >= count))]
            if len(wrong):
                raise SparkError(
                    f"a row wants partition {wrong[0]} of {topic}, which has {count}: from 0 to {count - 1}"
                )
            partitions[chosen] = np.where(present, numbers, np.int32(_UNCHOSEN))
        encode.choose_partitions(keys, rows, count, self._turn, partitions)
        self._turn += 1
        return partitions

    def _count(self, topic: str) -> int:
        if topic not in self._partitions:
            self._partitions[topic] = self._cluster.partition_count(
                topic, self._timeout_s, max_age_s=METADATA_MAX_AGE_S
            )
        return self._partitions[topic]

    def _records(
        self,
        topic_partition: TopicPartition,
        order: Ints,
        keys: encode.Column,
        values: encode.Column,
        headers: encode.Headers,
    ) -> Iterator[tuple[TopicPartition, Buffer, int]]:
        first, room = 0, self._batch_bytes
        while first < len(order):
            out: Bytes = np.empty(room, np.uint8)
            last, size = encode.encode(
                order, first, len(order), keys, values, headers, out, self._batch_bytes
            )
            if last == first:
                room *= 4  # one record is larger than a batch should be
                continue
            yield topic_partition, out[:size].data, last - first
            first, room = last, self._batch_bytes


def _column(array: pa.Array | None, rows: int) -> encode.Column:
    """Return a column of bytes or text for compiled code; a missing column is null everywhere."""
    if array is None:
        return _read_only(np.zeros(rows + 1, np.int32)), _NO_BYTES, np.zeros(rows, np.uint8)
    if array.type not in _PLAIN:
        array = array.cast(pa.binary())
    _, ends, data = array.buffers()
    return (
        _read_only(np.frombuffer(ends, np.int32)[array.offset : array.offset + rows + 1]),
        _NO_BYTES if data is None else _read_only(np.frombuffer(data, np.uint8)),
        _present(array),
    )


def _headers(array: Any, rows: int) -> encode.Headers:
    if array is None:
        nothing = _column(None, 0)
        return _read_only(np.zeros(rows + 1, np.int32)), np.zeros(rows, np.uint8), nothing, nothing
    used = array.flatten()  # neither those of other rows nor those that a null hides
    if used.null_count or used.field("key").null_count:
        raise SparkError("a header has no key: fill it, or leave the header out")
    keys, values = array.values.field("key"), array.values.field("value")
    ends = _read_only(np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + rows + 1])
    return ends, _present(array), _column(keys, len(keys)), _column(values, len(values))


def _present(array: pa.Array) -> Bytes:
    """Return a byte for each row, 0 if it is null; without pandas, which takes a second to load."""
    if not array.null_count:
        return np.ones(len(array), np.uint8)
    bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)]
