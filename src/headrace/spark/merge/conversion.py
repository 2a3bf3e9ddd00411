"""Values of events in the types of a table.

Fields of structs are found by their names, as when rows are appended. Spark's `cast` goes by their positions,
and would mix up the fields of a table that has got new ones.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import Column


def converted_field(value: "Column", given: StructType, wanted: StructField) -> "Column":
    """Return the value of a field as the table has it; null if the `given` fields do not include it."""
    if wanted.name not in given.fieldNames():
        return F.lit(None).cast(wanted.dataType)
    return converted(value, given[wanted.name].dataType, wanted.dataType)


def converted(value: "Column", given: DataType, wanted: DataType) -> "Column":
    """Return a value of the type `given` as one of the type `wanted`."""
    if given == wanted:
        return value
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        fields = [
            converted_field(value.getField(each.name), given, each).alias(each.name) for each in wanted.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        of_elements = given.elementType, wanted.elementType
        return F.transform(value, lambda each: converted(each, *of_elements))
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        of_keys, of_values = (given.keyType, wanted.keyType), (given.valueType, wanted.valueType)
        with_keys = F.transform_keys(value, lambda key, _: converted(key, *of_keys))
        return F.transform_values(with_keys, lambda _, each: converted(each, *of_values))
    return value.cast(wanted)
