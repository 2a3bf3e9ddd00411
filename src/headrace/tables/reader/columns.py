"""Arrow columns of record batches: filled batch by batch, returned as one `pyarrow.RecordBatch`."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.protocol.batch import HEADER_SIZE, BatchHeader, TimestampType
from headrace.protocol.compression import Buffer, Compression, decompress
from headrace.protocol.errors import CorruptMessage, InvalidRecord
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import MAX_UNPACKED_BYTES
from headrace.tables.reader import walk
from headrace.tables.reader.offsets import Range

TARGET_ROWS: Final = 50_000
TARGET_BYTES: Final = 32 * 1024 * 1024
_SMALLEST_RECORD: Final = 7  # bytes: its length, and six more

_HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
TYPES: Final[dict[str, pa.DataType]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(_HEADER),
}
"""The columns of a topic, as Spark's Kafka source has them, in its order."""

_WANT: Final = {"key": walk.WANT_KEY, "value": walk.WANT_VALUE, "headers": walk.WANT_HEADERS}


class _Binary:
    """A column of bytes or text: the end of each row's bytes, the bytes, a bitmap of non-null rows."""

    def __init__(self, kind: pa.DataType, *, rows: int, size: int) -> None:
        self._kind = kind
        self.ends: NDArray[np.int32] = np.zeros(rows + 1, np.int32)
        self.data: NDArray[np.uint8] = np.empty(size, np.uint8)
        self.present: NDArray[np.uint8] = np.zeros((rows + 7) // 8, np.uint8)

    def make_room(self, rows: int, size: int) -> None:
        if rows + 1 > len(self.ends):
            self.ends = _grown(self.ends, rows + 1)
            self.present = _grown(self.present, (len(self.ends) + 7) // 8)
        if size > len(self.data):
            self.data = _grown(self.data, size)

    def array(self, rows: int, *, nullable: bool = True) -> pa.Array:
        present = pa.py_buffer(self.present) if nullable else None
        data = pa.py_buffer(self.data[: int(self.ends[rows])])
        buffers = [present, pa.py_buffer(self.ends[: rows + 1]), data]
        return pa.Array.from_buffers(self._kind, rows, buffers)


class Columns:
    """The columns `names` of the records of ranges, one range after the other."""

    def __init__(self, names: Sequence[str], target_rows: int = TARGET_ROWS) -> None:
        self._target_rows = target_rows
        self._schema = pa.schema([(name, TYPES[name]) for name in names])
        self._wanted = sum(_WANT.get(name, 0) for name in names)
        self._rows = target_rows
        self._sizes = [1 << 20] * 4  # bytes of keys, values, header keys and header values
        self._begin()

    def _begin(self) -> None:
        rows, (keys, values, names, contents) = self._rows, self._sizes
        self._used: NDArray[np.int64] = np.zeros(walk.COUNTS, np.int64)
        self._partitions: list[TopicPartition] = []
        self._ends: list[int] = []  # the row after the last one of each of these partitions
        self._offsets: NDArray[np.int64] = np.empty(rows, np.int64)
        self._timestamps: NDArray[np.int64] = np.empty(rows, np.int64)
        self._types: NDArray[np.int32] | None = None
        wants_headers = bool(self._wanted & walk.WANT_HEADERS)
        self._keys = _Binary(TYPES["key"], rows=rows, size=keys)
        self._values = _Binary(TYPES["value"], rows=rows, size=values)
        few = rows if wants_headers else 0
        self._header_ends: NDArray[np.int32] = np.zeros(few + 1, np.int32)
        self._header_present: NDArray[np.uint8] = np.zeros((few + 7) // 8, np.uint8)
        self._header_keys = _Binary(pa.string(), rows=few, size=names if wants_headers else 0)
        self._header_values = _Binary(pa.binary(), rows=few, size=contents if wants_headers else 0)

    @property
    def rows(self) -> int:
        return int(self._used[walk.ROWS])

    @property
    def is_full(self) -> bool:
        used = self._used
        size = used[walk.KEY_BYTES] + used[walk.VALUE_BYTES]
        size += used[walk.HEADER_KEY_BYTES] + used[walk.HEADER_VALUE_BYTES]
        return bool(used[walk.ROWS] >= self._target_rows or size >= TARGET_BYTES)

    def add(self, batch: Buffer, header: BatchHeader, wanted: Range) -> None:
        """Add the wanted records of a batch. `header` is its header, with a checksum that was checked."""
        if header.records_count == 0:
            return  # compaction keeps an empty batch for its sequence numbers
        body: Buffer = memoryview(batch)[HEADER_SIZE : header.size]
        if header.compression is not Compression.NONE:
            try:
                body = decompress(header.compression, body, max_bytes=MAX_UNPACKED_BYTES)
            except InvalidRecord as error:
                raise _corrupt(wanted, header, str(error)) from error
        if header.records_count * _SMALLEST_RECORD > len(body) or header.records_count < 0:
            raise _corrupt(wanted, header, f"it claims {header.records_count} records in {len(body)} bytes")
        self._make_room(header.records_count, len(body))
        before = self.rows
        is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        outcome = walk.walk(
            np.frombuffer(body, np.uint8),
            header.records_count,
            header.base_offset,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp if is_append_time else -1,
            wanted.first,
            wanted.last,
            self._wanted,
            self._used,
            self._offsets,
            self._timestamps,
            (self._keys.ends, self._keys.data, self._keys.present),
            (self._values.ends, self._values.data, self._values.present),
            (
                self._header_ends,
                self._header_present,
                self._header_keys.ends,
                self._header_keys.data,
                self._header_values.ends,
                self._header_values.data,
                self._header_values.present,
            ),
        )
        if outcome != walk.OK:
            raise _corrupt(wanted, header, "one of its records is malformed")
        if is_append_time:
            if self._types is None or len(self._types) < len(self._offsets):
                self._types = _grown(
                    np.zeros(0, np.int32) if self._types is None else self._types, len(self._offsets)
                )
            self._types[before : self.rows] = TimestampType.LOG_APPEND_TIME
        if self._partitions and self._partitions[-1] == wanted.partition:
            self._ends[-1] = self.rows
        else:
            self._partitions.append(wanted.partition)
            self._ends.append(self.rows)

    def _make_room(self, rows: int, size: int) -> None:
        used = self._used
        rows += int(used[walk.ROWS])
        if rows > len(self._offsets):
            self._offsets = _grown(self._offsets, rows)
            self._timestamps = _grown(self._timestamps, rows)
            self._rows = len(self._offsets)
        if self._wanted & walk.WANT_KEY:
            self._keys.make_room(rows, int(used[walk.KEY_BYTES]) + size)
        if self._wanted & walk.WANT_VALUE:
            self._values.make_room(rows, int(used[walk.VALUE_BYTES]) + size)
        if self._wanted & walk.WANT_HEADERS:
            if rows + 1 > len(self._header_ends):
                self._header_ends = _grown(self._header_ends, rows + 1)
                self._header_present = _grown(self._header_present, (len(self._header_ends) + 7) // 8)
            headers = int(used[walk.HEADERS]) + size // 2  # a header has at least two bytes
            self._header_keys.make_room(headers, int(used[walk.HEADER_KEY_BYTES]) + size)
            self._header_values.make_room(headers, int(used[walk.HEADER_VALUE_BYTES]) + size)

    def take(self) -> pa.RecordBatch:
        """Return the rows, and begin with empty columns."""
        rows = self.rows
        arrays = [self._array(name, rows) for name in self._schema.names]
        # The next columns probably need as much room, which is allocated at once.
        grown = (self._keys, self._values, self._header_keys, self._header_values)
        self._sizes = [len(each.data) or 1 << 20 for each in grown]
        self._begin()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, name: str, rows: int) -> pa.Array:
        match name:
            case "key":
                return self._keys.array(rows)
            case "value":
                return self._values.array(rows)
            case "topic":
                return _texts([partition.topic for partition in self._partitions], self._counts())
            case "partition":
                numbers = np.array([each.partition for each in self._partitions], np.int32)
                return _numbers(TYPES[name], np.repeat(numbers, self._counts()), rows)
            case "offset":
                return _numbers(TYPES[name], self._offsets, rows)
            case "timestamp":
                return _numbers(TYPES[name], self._timestamps, rows)
            case "timestampType":
                if self._types is None:
                    return _numbers(TYPES[name], np.zeros(rows, np.int32), rows)
                return _numbers(TYPES[name], _grown(self._types, rows), rows)
            case _:
                count = int(self._used[walk.HEADERS])
                keys = _text(self._header_keys.array(count, nullable=False))
                values = self._header_values.array(count)
                pairs = pa.StructArray.from_arrays([keys, values], fields=list(_HEADER))
                buffers = [pa.py_buffer(self._header_present), pa.py_buffer(self._header_ends[: rows + 1])]
                return pa.Array.from_buffers(TYPES["headers"], rows, buffers, children=[pairs])

    def _counts(self) -> NDArray[np.int64]:
        ends = np.array(self._ends, np.int64)
        ends[1:] -= ends[:-1].copy()
        return ends


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the array with room for at least `size` elements; the new ones are zero."""
    if size <= len(array):
        return array
    grown = np.zeros(max(size, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown


def _text(strings: pa.Array) -> pa.Array:
    """Return the strings; invalid UTF-8 in them becomes the replacement character, as in Java."""
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        raw = strings.view(pa.binary()).to_pylist()
        return pa.array([each.decode(errors="replace") for each in raw], pa.string())
    return strings


def _texts(texts: Sequence[str], counts: NDArray[np.int64]) -> pa.Array:
    """Return each text in as many rows. `pa.scalar` would import pandas, which takes a second."""
    raw = [np.frombuffer(text.encode(), np.uint8) for text in texts]
    sizes = np.repeat(np.array([len(each) for each in raw], np.int64), counts)
    ends = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=ends[1:])
    data = [np.tile(each, count) for each, count in zip(raw, counts, strict=True)]
    joined = np.concatenate([np.zeros(0, np.uint8), *data])
    return pa.Array.from_buffers(pa.string(), len(sizes), [None, pa.py_buffer(ends), pa.py_buffer(joined)])


def _numbers(kind: pa.DataType, numbers: NDArray[Any], rows: int) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(numbers[:rows])])


def _corrupt(wanted: Range, header: BatchHeader, why: str) -> CorruptMessage:
    where = f"{wanted.partition}: the batch at offset {header.base_offset}"
    return CorruptMessage(f"{where} cannot be read: {why}")
