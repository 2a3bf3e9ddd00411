"""Values that an event leaves out because the database did not log them, with a placeholder instead.

PostgreSQL does not log a large value (TOAST) that an update has not changed. Debezium then writes its
`unavailable.value.placeholder`, and the row keeps the value that it has.
"""

import base64
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as spark

if TYPE_CHECKING:
    from pyspark.sql import Column


def is_unavailable(value: "Column", kind: spark.DataType, placeholder: str) -> "Column | None":
    """Return whether a value of this type is the placeholder; None if Debezium has none for the type."""
    data = placeholder.encode()
    match kind:
        case spark.StringType():  # text, or bytes in JSON
            return value.isin(placeholder, base64.b64encode(data).decode())
        case spark.BinaryType():
            return value == F.lit(data)
        case spark.ArrayType(elementType=spark.StringType()):
            return value == F.array(F.lit(placeholder))
        case spark.ArrayType(elementType=spark.IntegerType() | spark.LongType() as number):
            return value == F.array(*(F.lit(each).cast(number) for each in data))
        case spark.MapType(keyType=spark.StringType(), valueType=spark.StringType()):  # hstore
            return F.map_keys(value) == F.array(F.lit(placeholder))
    return None
