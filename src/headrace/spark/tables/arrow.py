"""Spark's schema as Arrow's, in the one form in which files of a table have it: times in UTC."""

from collections.abc import Collection

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType, never_null: Collection[str] = ()) -> pa.Schema:
    plain = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([pa.field(each.name, each.type, each.name not in never_null) for each in plain])
