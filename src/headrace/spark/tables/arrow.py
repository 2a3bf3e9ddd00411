"""The Arrow schema of the files of a table, with times in UTC."""

from collections.abc import Collection

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType, never_null: Collection[str] = ()) -> pa.Schema:
    plain = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([pa.field(each.name, each.type, each.name not in never_null) for each in plain])


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in the schema of the files; Spark's times are in the time zone of the session.

    ValueError is raised for a null in a column that is not nullable.
    """
    for field in schema:
        if not field.nullable and batch.column(field.name).null_count:
            raise ValueError(f"column {field.name!r} has a null, and is not nullable in the table")
    return batch if batch.schema.equals(schema) else batch.select(schema.names).cast(schema)
