"""Spark's rows as Arrow's, in the one form in which files of a table have them: times in UTC."""

from collections.abc import Collection

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType, never_null: Collection[str] = ()) -> pa.Schema:
    plain = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([pa.field(each.name, each.type, each.name not in never_null) for each in plain])


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch as files of the table have it; Spark's times, for one, are in the session's zone.

    ValueError if it has a null in a column that must not have any.
    """
    for field in schema:
        if not field.nullable and batch.column(field.name).null_count:
            raise ValueError(f"column {field.name!r} has a null, which the table does not allow")
    return batch if batch.schema.equals(schema) else batch.select(schema.names).cast(schema)
