"""The partition of each row of an Iceberg table: hidden partitioning, computed on whole columns.

Tasks use this module, and not pyiceberg: it takes a second or two to import, and computes these transforms on
columns only with another package.
"""

import datetime as dt
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from headrace.spark.tables.files import Files
from headrace.spark.tables.packages import needed
from headrace.spark.tables.partitions import Values, directory, grouped

EPOCH: Final = dt.date(1970, 1, 1)
EPOCH_YEAR: Final = 1970
_HASH_BITS: Final = 0x7FFFFFFF
_HOURS: Final = 24


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec: a transform of a column.

    `argument` is the number of buckets, or the width of a truncation.
    """

    name: str
    source: tuple[str, ...]  # the path of the column; longer than one for a field of a struct
    transform: str  # identity, bucket, truncate, year, month, day, hour or void
    argument: int = 0

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the value of each row as Iceberg stores it: dates and times are integers."""
        if self.transform == "void" or self.source[0] not in batch.schema.names:
            return pa.nulls(batch.num_rows, pa.int32())
        column = batch.column(self.source[0])
        if len(self.source) > 1:
            column = pc.struct_field(column, list(self.source[1:]))
        return _TRANSFORMS[self.transform](column, self.argument)

    def text(self, value: Any) -> str | None:
        """Return a value for the name of a directory: 2026-01-31 for the day 20484."""
        if value is None:
            return None
        if self.transform == "day":
            return (EPOCH + dt.timedelta(days=value)).isoformat()
        if self.transform == "hour":
            return f"{(EPOCH + dt.timedelta(days=value // _HOURS)).isoformat()}-{value % _HOURS:02}"
        if self.transform == "month":
            return f"{EPOCH_YEAR + value // 12}-{value % 12 + 1:02}"
        if self.transform == "year":
            return str(EPOCH_YEAR + value)
        return value.hex() if isinstance(value, bytes) else str(value)


class PartitionedFiles(Files):
    """The files of one task, each with the rows of one partition. The source columns stay in the files."""

    def __init__(
        self,
        filesystem: pa.fs.FileSystem,
        schema: pa.Schema,
        fields: Sequence[PartitionField],
        *,
        target_bytes: int,
    ) -> None:
        super().__init__(filesystem, schema, partition_by=(), target_bytes=target_bytes)
        self._fields = tuple(fields)
        base = filesystem.base_fs if isinstance(filesystem, pa.fs.SubTreeFileSystem) else filesystem
        self._has_directories = isinstance(base, pa.fs.LocalFileSystem)

    def divided(self, batch: pa.RecordBatch) -> Iterator[tuple[Values, pa.RecordBatch]]:
        return grouped(batch, [field.values(batch) for field in self._fields])

    def directory(self, values: Values) -> str:
        names = [field.name for field in self._fields]
        texts = tuple(field.text(value) for field, value in zip(self._fields, values, strict=True))
        found = directory(names, texts)
        if found and self._has_directories:
            self._filesystem.create_dir(found, recursive=True)
        return found

    def partition(self, values: Values) -> dict[str, Any]:
        return {field.name: value for field, value in zip(self._fields, values, strict=True)}


def _identity(column: pa.Array, _: int) -> pa.Array:
    if pa.types.is_date32(column.type):
        return column.view(pa.int32())
    return column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _year(column: pa.Array, _: int) -> pa.Array:
    return pc.subtract(pc.year(column), EPOCH_YEAR).cast(pa.int32())


def _month(column: pa.Array, _: int) -> pa.Array:
    months = pc.multiply(pc.subtract(pc.year(column), EPOCH_YEAR), 12)
    return pc.add(months, pc.subtract(pc.month(column), 1)).cast(pa.int32())


def _periods(microseconds: int, column: pa.Array, _: int) -> pa.Array:
    """Divide times, also those before 1970, where Arrow would round towards zero; a date is a day already."""
    numbers = _identity(column, 0)
    if pa.types.is_date32(column.type):
        return numbers
    known = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    return pa.array(np.floor_divide(known, microseconds), pa.int32(), mask=_is_null(numbers))


def _is_null(column: pa.Array) -> Any:
    return column.is_null().to_numpy(zero_copy_only=False)


def _truncate(column: pa.Array, width: int) -> pa.Array:
    kind = column.type
    if _is_text(kind):
        return pc.utf8_slice_codeunits(column, 0, width)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pc.binary_slice(column, 0, width)
    if pa.types.is_integer(kind):
        numbers = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        return pa.array(numbers - np.mod(numbers, width), kind, mask=_is_null(column))

    def truncated(value: Decimal) -> Decimal:
        number, exponent = _unscaled(value)
        number -= number % width
        # scaleb() would round to the precision of the context.
        return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), exponent))

    return _by_value(column, truncated, kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _unscaled(value: Decimal) -> tuple[int, int]:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), value
    number = int("".join(map(str, digits)))
    return -number if sign else number, exponent


def _bucket(column: pa.Array, buckets: int) -> pa.Array:
    """Return the hashes of the bytes that Iceberg's specification says; decimals have as few as possible."""
    hashed = needed("mmh3", 'format("headrace-iceberg")').hash
    plain = _identity(column, 0)
    encode: Callable[[Any], bytes] = bytes
    if pa.types.is_integer(plain.type):
        encode = partial(struct.pack, "<q")
    elif _is_text(plain.type):
        encode = str.encode
    elif pa.types.is_decimal(plain.type):

        def encode(value: Decimal) -> bytes:
            number, _ = _unscaled(value)
            bits = (number if number >= 0 else ~number).bit_length()
            return number.to_bytes(bits // 8 + 1, "big", signed=True)

    return _by_value(plain, lambda value: (hashed(encode(value)) & _HASH_BITS) % buckets, pa.int32())


def _by_value(column: pa.Array, compute: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    """Return the results for each row; each different value is computed once."""
    encoded = column.dictionary_encode()
    results = pa.array([compute(value) for value in encoded.dictionary.to_pylist()], kind)
    return results.take(encoded.indices)


_TRANSFORMS: Final[Mapping[str, Callable[[pa.Array, int], pa.Array]]] = {
    "identity": _identity,
    "bucket": _bucket,
    "truncate": _truncate,
    "year": _year,
    "month": _month,
    "day": partial(_periods, 86_400_000_000),
    "hour": partial(_periods, 3_600_000_000),
}
