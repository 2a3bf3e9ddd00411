"""Messages as Parquet, for a download. It needs pyarrow."""

import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.gateway.admin.export import row_of
from headrace.gateway.problems import printable

_SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("time", pa.string()),
        ("key", pa.string()),
        ("key_encoding", pa.string()),
        ("key_schema_id", pa.int32()),
        ("value", pa.string()),
        ("value_encoding", pa.string()),
        ("value_schema_id", pa.int32()),
        ("headers", pa.string()),
        ("truncated", pa.bool_()),
    ]
)
_TEXTS: Final = ("key", "value", "headers")


class _Written:
    """A file whose bytes are taken as soon as they are written."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: what is written is there."""

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class ParquetExport:
    """One row group for each call of `rows`."""

    def __init__(self) -> None:
        self._file = _Written()
        self._writer = pq.ParquetWriter(pa.PythonFile(self._file, mode="w"), _SCHEMA, compression="zstd")

    def rows(self, messages: Sequence[bytes]) -> bytes:
        rows = [row_of(json.loads(message)) for message in messages]
        for row in rows:
            for name in _TEXTS:
                row[name] = None if row[name] is None else printable(row[name])
        if rows:
            self._writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
        return self._file.take()

    def end(self, stopped_by: str, next_: str, offline: Sequence[int]) -> bytes:
        about = {"stopped_by": stopped_by, "next": next_, "offline": json.dumps(offline)}
        self._writer.add_key_value_metadata(about)
        self._writer.close()
        return self._file.take()
