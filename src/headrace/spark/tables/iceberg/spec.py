"""The partition spec of an Iceberg table: created from text, compared with text, and given to tasks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, Transform, TruncateTransform, parse_transform
from pyiceberg.types import DoubleType, FloatType, IcebergType, NestedField, StructType

from headrace.spark.errors import InvalidOption
from headrace.spark.tables.iceberg import partitions as iceberg_partitions
from headrace.spark.tables.partition_texts import TRANSFORMS, parse, write
from headrace.spark.tables.schema import UnfitTable

if TYPE_CHECKING:
    from pyiceberg.table import Table

_SUFFIXES: Final = {"truncate": "trunc"}  # of the names of partition fields, as in Java's Iceberg


def new_spec(partition_by: Sequence[str], schema: Schema) -> PartitionSpec:
    """Return the spec of a new table; InvalidOption if the schema cannot be partitioned like that."""
    fields = []
    for n, text in enumerate(partition_by):
        transform, column, argument = parse(text)
        source = _column(schema, column)
        kind = parse_transform(f"{transform}[{argument}]" if argument else transform)
        if _is_float(source.field_type) or not kind.can_transform(source.field_type):
            raise InvalidOption(
                "partitionBy",
                f"{text}: column {column!r} is {source.field_type}, which cannot be partitioned by",
            )
        name = column if transform == "identity" else f"{column}_{_SUFFIXES.get(transform, transform)}"
        if transform != "identity" and name in schema.column_names:
            raise InvalidOption(
                "partitionBy",
                f"{text}: the partition is called {name}, and so is a column: rename the column",
            )
        fields.append(
            PartitionField(
                source_id=source.field_id, field_id=PARTITION_FIELD_ID_START + n, transform=kind, name=name
            )
        )
    return PartitionSpec(*fields)


def _column(schema: Schema, name: str) -> NestedField:
    try:
        return schema.find_field(name)
    except ValueError:
        raise InvalidOption(
            "partitionBy", f"there is no column {name!r}; expected one of {', '.join(schema.column_names)}"
        ) from None


def _is_float(kind: IcebergType) -> bool:
    return isinstance(kind, FloatType | DoubleType)


def written(table: "Table") -> tuple[str, ...]:
    """Return the partitioning of a table as text."""
    return tuple(
        write(each.transform, ".".join(each.source), each.argument)
        for each in fields_of(table)
        if each.transform != "void"
    )


def check_spec(table: "Table", partition_by: Sequence[str]) -> None:
    """Raise InvalidOption if the table is partitioned differently; () accepts any partitioning."""
    if partition_by and tuple(partition_by) != (found := written(table)):
        raise InvalidOption(
            "partitionBy",
            f"the table is partitioned by {', '.join(found) or 'nothing'}: leave the option out",
        )


def fields_of(table: "Table") -> list[iceberg_partitions.PartitionField]:
    """Return the current spec for tasks; UnfitTable if it has a transform that is not known."""
    schema = table.schema()
    return [_field(each, schema) for each in table.spec().fields]


def _field(field: PartitionField, schema: Schema) -> iceberg_partitions.PartitionField:
    transform = str(field.transform).partition("[")[0]
    if transform == "void":
        return iceberg_partitions.PartitionField(field.name, ("",), "void")
    source = _path(schema.as_struct(), field.source_id)
    if (
        source is None
        or transform not in ("identity", *TRANSFORMS)
        or _is_float(schema.find_type(field.source_id))
    ):
        raise UnfitTable(
            f"the table is partitioned by {field.name!r} ({field.transform} of column id {field.source_id}), "
            "which this sink cannot compute: write to another one"
        )
    return iceberg_partitions.PartitionField(field.name, source, transform, _argument(field.transform))


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


def _argument(transform: "Transform[object, object]") -> int:
    if isinstance(transform, BucketTransform):
        return transform.num_buckets
    return transform.width if isinstance(transform, TruncateTransform) else 0
