"""The rows of a file of an Iceberg table, with the table's current columns.

A column is found by its id, so it may have another name in an older file, or a narrower type, or be missing.
We read the files ourselves, because pyiceberg 0.12 reads null lists and maps of structs as empty ones.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as iceberg

from headrace.spark.tables.iceberg.table import WHAT
from headrace.spark.tables.packages import needed

if TYPE_CHECKING:
    import pyarrow.fs
    from pyiceberg.table import Table

_PROMOTIONS: Final = ((iceberg.IntegerType, iceberg.LongType), (iceberg.FloatType, iceberg.DoubleType))


def is_readable(table: "Table", filesystem: "pa.fs.FileSystem", path: str) -> bool:
    """Return whether `rows` can read a file."""
    found = _columns(filesystem, path)
    if found is None:  # a file of another program, without ids
        return False
    for field in table.schema().fields:
        stored = found.get(field.field_id)
        if stored is None:
            if field.required or field.initial_default is not None:
                return False
        elif not _is_wider(field.field_type, stored.field_type):
            return False
    return True


def rows(table: "Table", filesystem: "pa.fs.FileSystem", path: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file by the table's names; types may be narrower."""
    found = _columns(filesystem, path)
    assert found is not None, path
    fields = table.schema().fields
    wanted = needed("pyiceberg.io.pyarrow", WHAT).schema_to_pyarrow(table.schema())
    with pq.ParquetFile(path, filesystem=filesystem) as opened:
        for batch in opened.iter_batches():
            columns = [
                batch.column(found[field.field_id].name)
                if field.field_id in found
                else pa.nulls(batch.num_rows, wanted.field(field.name).type)
                for field in fields
            ]
            yield pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields])


def _columns(filesystem: "pa.fs.FileSystem", path: str) -> dict[int, iceberg.NestedField] | None:
    """Return the columns of a file by their ids, None if they have none."""
    schema = pq.read_schema(path, filesystem=filesystem)
    try:
        found = needed("pyiceberg.io.pyarrow", WHAT).pyarrow_to_schema(schema)
    except ValueError:
        return None
    return {each.field_id: each for each in found.fields}


def _is_wider(kind: iceberg.IcebergType, stored: iceberg.IcebergType) -> bool:
    """Return whether values of a file can be cast to the table's type."""
    if isinstance(kind, iceberg.StructType) and isinstance(stored, iceberg.StructType):
        return _is_wider_struct(kind, stored)
    if isinstance(kind, iceberg.ListType) and isinstance(stored, iceberg.ListType):
        return kind.element_id == stored.element_id and _is_wider(kind.element_type, stored.element_type)
    if isinstance(kind, iceberg.MapType) and isinstance(stored, iceberg.MapType):
        if (kind.key_id, kind.value_id) != (stored.key_id, stored.value_id):
            return False
        return _is_wider(kind.key_type, stored.key_type) and _is_wider(kind.value_type, stored.value_type)
    if isinstance(kind, iceberg.DecimalType) and isinstance(stored, iceberg.DecimalType):
        return kind.scale == stored.scale and kind.precision >= stored.precision
    return kind == stored or (type(stored), type(kind)) in _PROMOTIONS


def _is_wider_struct(kind: iceberg.StructType, stored: iceberg.StructType) -> bool:
    """Return whether fields with the same names have the same ids: structs are cast by names."""
    known: dict[str, Any] = {each.name: each for each in stored.fields}
    ids = {each.field_id for each in stored.fields}
    for field in kind.fields:
        found = known.get(field.name)
        if found is None:
            if field.required or field.field_id in ids or field.initial_default is not None:
                return False
        elif found.field_id != field.field_id or not _is_wider(field.field_type, found.field_type):
            return False
    return True
