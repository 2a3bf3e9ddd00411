"""Found by Spark for its name: whoever has Headrace installed can say `format("headrace-iceberg")`."""

from headrace.spark.tables.iceberg import IcebergSource as DefaultSource

__all__ = ["DefaultSource"]
