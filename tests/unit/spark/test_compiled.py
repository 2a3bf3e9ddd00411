"""The compiled code that a worker has before its first task is the code that tasks use."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from headrace.protocol.batch import read_batch
from headrace.protocol.compression import Compression
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, encode_batch
from headrace.spark import encode
from headrace.spark.rows import RowEncoder
from headrace.tables.reader import walk
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.columns import TYPES, Columns
from headrace.tables.reader.offsets import Range


class _Cluster(ClusterConnections):
    def topics(self, names: Iterable[str] | None = None) -> dict[str, list[int]]:
        return {name: [0, 1, 2] for name in names or ()}


def signatures(*functions: Any) -> list[Any]:
    """The types of arguments that machine code is there for."""
    return [each for function in functions for each in function.signatures]


def test_the_code_for_reading_is_loaded() -> None:
    walk.load()
    loaded = signatures(walk.walk)
    columns = Columns(tuple(TYPES))
    for compression in (Compression.NONE, Compression.LZ4):
        batch = encode_batch([Record(b"k", b"v", [("h", b"1")], 5)], base_offset=0, compression=compression)
        received = memoryview(bytearray(batch))
        columns.add(received, read_batch(received), Range(TopicPartition("orders", 0), 0, 9))

    assert columns.take().num_rows == 2
    assert signatures(walk.walk) == loaded


def test_the_code_for_writing_is_loaded() -> None:
    encode.load()
    loaded = signatures(encode.choose_partitions, encode.encode)
    rows = RowEncoder(_Cluster("127.0.0.1:1"), "orders", 1000, turn=0)
    for keys in ([b"one", None], [b"one", b"two"]):
        batch = pa.RecordBatch.from_pydict(
            {"key": pa.array(keys, pa.binary()), "value": pa.array(["a", "b"])}
        )
        assert sum(count for _, _, count in rows.encoded(batch)) == 2

    assert signatures(encode.choose_partitions, encode.encode) == loaded
