"""The Arrow schema of the files of a table, with times in UTC."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType, never_null: Collection[str] = ()) -> pa.Schema:
    plain = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([pa.field(field.name, field.type, field.name not in never_null) for field in plain])


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in the schema of the files; Spark's times are in the time zone of the session.

    ValueError is raised for a null in a column that is not nullable.
    """
    for field in schema:
        if not field.nullable and batch.column(field.name).null_count:
            raise ValueError(f"column {field.name!r} has a null, and is not nullable in the table")
    fitting = batch if batch.schema.equals(schema) else batch.select(schema.names).cast(schema)
    if not any(_has_variant(field.type) for field in schema):
        return fitting
    columns = [_filled(column) for column in fitting.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _has_variant(kind: pa.DataType) -> bool:
    inner = [kind.field(n).type for n in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return is_variant(kind) or any(map(_has_variant, inner))


def _filled(column: pa.Array) -> pa.Array:
    """Return the column with empty fields of null variants: Spark has nulls there, which Parquet refuses."""
    kind = column.type
    if not _has_variant(kind):
        return column
    if not pa.types.is_struct(kind):
        return pa.array(column.to_pylist(), kind)  # of lists and maps; Arrow builds it as it should be
    fields = [column.field(n) for n in range(kind.num_fields)]
    filled = (
        [pc.fill_null(field, b"") for field in fields] if is_variant(kind) else list(map(_filled, fields))
    )
    return pa.StructArray.from_arrays(filled, fields=list(kind), mask=column.is_null())


def is_variant(kind: pa.DataType) -> bool:
    """Return whether it is Spark's struct of a VARIANT, which Delta stores as it is."""
    return bool(
        pa.types.is_struct(kind)
        and [field.name for field in kind] == ["value", "metadata"]
        and (kind.field("metadata").metadata or {}).get(b"variant") == b"true"
    )


def nulls(count: int, kind: pa.DataType) -> pa.Array:
    """Return nulls of a type; the fields of a variant are not nullable, so a null one has empty fields."""
    if not is_variant(kind):
        return pa.nulls(count, kind)
    empty = pa.array([b""] * count, pa.binary())
    return pa.StructArray.from_arrays([empty, empty], fields=list(kind), mask=pa.array([True] * count))
