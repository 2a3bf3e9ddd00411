"""Found by Spark for its name: whoever has Headrace installed can say `format("headrace-delta")`."""

from headrace.spark.tables.delta import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
