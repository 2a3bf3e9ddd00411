"""The partition spec of an Iceberg table: created from text, compared with text, and given to tasks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, TruncateTransform, parse_transform
from pyiceberg.types import DoubleType, FloatType, StructType

from headrace.spark.errors import InvalidOption
from headrace.spark.tables.iceberg import partitions as iceberg_partitions
from headrace.spark.tables.partition_texts import TRANSFORMS, parse, write
from headrace.spark.tables.schema import UnfitTable

if TYPE_CHECKING:
    from pyiceberg.table import Table

_FLOATS: Final = (FloatType, DoubleType)
_SUFFIXES: Final = {"truncate": "trunc"}  # of the names of partition fields, as in Java's Iceberg


def new_spec(partition_by: Sequence[str], schema: Schema) -> PartitionSpec:
    """Return the spec of a new table; InvalidOption if the schema cannot be partitioned like that."""
    fields = []
    for n, text in enumerate(partition_by):
        transform, column, argument = parse(text)
        try:
            source = schema.find_field(column)
        except ValueError:
            expected = f"expected one of {', '.join(schema.column_names)}"
            raise InvalidOption("partitionBy", f"there is no column {column!r}; {expected}") from None
        kind = parse_transform(f"{transform}[{argument}]" if argument else transform)
        if isinstance(source.field_type, _FLOATS) or not kind.can_transform(source.field_type):
            why = f"column {column!r} is {source.field_type}, which cannot be partitioned by"
            raise InvalidOption("partitionBy", f"{text}: {why}")
        name = column if transform == "identity" else f"{column}_{_SUFFIXES.get(transform, transform)}"
        if transform != "identity" and name in schema.column_names:
            why = f"the partition is called {name}, and so is a column: rename the column"
            raise InvalidOption("partitionBy", f"{text}: {why}")
        field_id = PARTITION_FIELD_ID_START + n
        fields.append(PartitionField(source.field_id, field_id, kind, name))
    return PartitionSpec(*fields)


def written(table: "Table") -> tuple[str, ...]:
    """Return the partitioning of a table as text."""
    return tuple(
        write(field.transform, ".".join(field.source), field.argument)
        for field in fields_of(table)
        if field.transform != "void"
    )


def check_spec(table: "Table", partition_by: Sequence[str]) -> None:
    """Raise InvalidOption if the table is partitioned differently; () accepts any partitioning."""
    if partition_by and tuple(partition_by) != (found := written(table)):
        partitioned_by = ", ".join(found) or "nothing"
        raise InvalidOption(
            "partitionBy", f"the table is partitioned by {partitioned_by}: leave the option out"
        )


def fields_of(table: "Table") -> list[iceberg_partitions.PartitionField]:
    """Return the current spec for tasks; UnfitTable if it has a transform that is not known."""
    schema = table.schema()
    return [_field(field, schema) for field in table.spec().fields]


def _field(field: PartitionField, schema: Schema) -> iceberg_partitions.PartitionField:
    transform = str(field.transform).partition("[")[0]
    if transform == "void":
        return iceberg_partitions.PartitionField(field.name, ("",), "void")
    source = _path(schema.as_struct(), field.source_id)
    if (
        source is None
        or transform not in ("identity", *TRANSFORMS)
        or isinstance(schema.find_type(field.source_id), _FLOATS)
    ):
        raise UnfitTable(
            f"the table is partitioned by {field.name!r} ({field.transform} of column id {field.source_id}), "
            "which this sink cannot compute: write to another one"
        )
    kind, argument = field.transform, 0
    if isinstance(kind, BucketTransform | TruncateTransform):
        argument = kind.num_buckets if isinstance(kind, BucketTransform) else kind.width
    return iceberg_partitions.PartitionField(field.name, source, transform, argument)


def _path(struct: StructType, field_id: int) -> tuple[str, ...] | None:
    """Return the path of a column, also in structs; None if there is none with that id."""
    for field in struct.fields:
        if field.field_id == field_id:
            return (field.name,)
        if isinstance(field.field_type, StructType):
            inner = _path(field.field_type, field_id)
            if inner is not None:
                return (field.name, *inner)
    return None
