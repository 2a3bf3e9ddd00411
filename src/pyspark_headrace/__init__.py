"""Found by Spark for its name: whoever has Headrace installed can say `format("headrace")`."""

from headrace.spark.source import HeadraceSource as DefaultSource

__all__ = ["DefaultSource"]
