"""The events of a batch: checked, and reduced to those that can have an effect.

PostgreSQL does not log a large value (TOAST) that an update has not changed. Debezium then writes its
`unavailable.value.placeholder`, and the row keeps the value that it has.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as spark
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from headrace.spark.errors import InvalidOption
from headrace.spark.merge.bounds import Bounds
from headrace.spark.merge.upsert import END_AT, START_AT, Upsert

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ORIGIN: Final = "_record"  # of pipelines: the partition and the offset of a record; not written to the table
SEQUENCE: Final = "__sequence"
DELETED: Final = "__deleted"
_ORDER: Final = "__order"
_INTEGERS: Final = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_TIMES: Final = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)
_KEYS: Final = (
    *(*_INTEGERS, *_TIMES, spark.StringType),
    *(spark.DecimalType, spark.BooleanType, spark.BinaryType),
)
_UNORDERED: Final = (MapType, spark.VariantType, StructType, ArrayType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the driver knows about the events of a batch."""

    count: int
    deletes: int
    unavailable: int  # events with a placeholder, which need a value of an earlier event
    bounds: Mapping[str, Bounds]  # of the keys


def column(name: str) -> "Column":
    """Return a column whose name may contain dots."""
    return F.col(f"`{name.replace('`', '``')}`")


def stored_schema(events: StructType, upsert: Upsert) -> StructType:
    """Return the schema of a new table for these events; InvalidOption if the events do not fit the rules."""
    known = {field.name: field.dataType for field in events.fields}
    for argument in ("keys", "sequence_by", "columns", "except_columns"):
        for name in getattr(upsert, argument):
            if name not in known:
                raise InvalidOption(
                    argument, f"there is no column {name!r}; expected one of {', '.join(known)}"
                )
    for name in upsert.keys:
        if not isinstance(known[name], _KEYS):
            raise InvalidOption("keys", f"column {name!r} is {known[name].simpleString()}: cast it")
    for name in upsert.sequence_by:
        if isinstance(known[name], _UNORDERED):
            raise InvalidOption(
                "sequence_by", f"column {name!r} is {known[name].simpleString()}: use its fields"
            )
    fields = [field for field in events.fields if upsert.is_stored(field.name) and field.name != ORIGIN]
    if upsert.history:
        if taken := {START_AT, END_AT} & known.keys():
            raise InvalidOption(
                "history", f"the rows have a column {max(taken)}, which history adds: drop it"
            )
        fields += [StructField(name, sequence_type(events, upsert)) for name in (START_AT, END_AT)]
    return StructType(fields)


def check_events(frame: "DataFrame", upsert: Upsert) -> None:
    """Raise InvalidOption if the events do not have the columns that the rules name."""
    stored_schema(frame.schema, upsert)
    _condition(frame, upsert)


def sequence_type(events: StructType, upsert: Upsert) -> DataType:
    """Return the type of a sequence: that of the column, or a struct of several."""
    fields = [StructField(name, events[name].dataType) for name in upsert.sequence_by]
    return fields[0].dataType if len(fields) == 1 else StructType(fields)


def sequence_of(upsert: Upsert) -> "Column":
    columns = [column(name) for name in upsert.sequence_by]
    return columns[0] if len(columns) == 1 else F.struct(*columns)


def checked(frame: "DataFrame", upsert: Upsert) -> "DataFrame":
    """Return the events with SEQUENCE and DELETED. A null in a key or in a sequence makes the query fail."""
    rows = frame.select(
        *(_never_null(frame, field.name, upsert) for field in frame.schema.fields),
        _condition(frame, upsert).alias(DELETED),
    )
    return rows.withColumn(SEQUENCE, sequence_of(upsert))


def _never_null(frame: "DataFrame", name: str, upsert: Upsert) -> "Column":
    if name not in upsert.keys and name not in upsert.sequence_by:
        return column(name)
    what = "key" if name in upsert.keys else "sequence"
    origin = F.lit("")
    if _has_origin(frame.schema):
        position = (F.col(f"{ORIGIN}.{field}").cast("string") for field in ("partition", "offset"))
        origin = F.concat(F.lit(" of partition and offset "), F.concat_ws(", ", *position))
    why = F.lit(f" has no {what}: {name} is null. Filter such events before the sink")
    message = F.concat(F.lit("an event"), origin, why)
    refused = F.raise_error(message).cast(frame.schema[name].dataType)
    return F.when(column(name).isNull(), refused).otherwise(column(name)).alias(name)


def _condition(frame: "DataFrame", upsert: Upsert) -> "Column":
    if upsert.deletes is None:
        return F.lit(False)
    condition = F.expr(upsert.deletes) if isinstance(upsert.deletes, str) else upsert.deletes
    try:
        kind = frame.select(condition.alias(DELETED)).schema[DELETED].dataType
    except PySparkException as error:
        raise InvalidOption("deletes", str(error).splitlines()[0]) from error
    if not isinstance(kind, spark.BooleanType):
        raise InvalidOption("deletes", f"it is {kind.simpleString()}; expected a condition")
    return F.coalesce(condition, F.lit(False))


def _has_origin(schema: StructType) -> bool:
    if ORIGIN not in schema.fieldNames():
        return False
    kind = schema[ORIGIN].dataType
    return isinstance(kind, StructType) and {"topic", "partition", "offset"} <= set(kind.fieldNames())


def is_unavailable(value: "Column", kind: DataType, placeholder: str) -> "Column | None":
    """Return whether a value of this type is the placeholder; None if Debezium has none for the type."""
    data = placeholder.encode()
    match kind:
        case spark.StringType():  # text, or bytes in JSON
            return value.isin(placeholder, base64.b64encode(data).decode())
        case spark.BinaryType():
            return value == F.lit(data)
        case ArrayType(elementType=spark.StringType()):
            return value == F.array(F.lit(placeholder))
        case ArrayType(elementType=spark.IntegerType() | spark.LongType() as number):
            return value == F.array(*(F.lit(byte).cast(number) for byte in data))
        case MapType(keyType=spark.StringType(), valueType=spark.StringType()):  # hstore
            return F.map_keys(value) == F.array(F.lit(placeholder))
    return None


def unavailable_columns(schema: StructType, upsert: Upsert) -> "dict[str, Column]":
    """Return for each column that may have a placeholder whether it has."""
    found = {
        field.name: is_unavailable(column(field.name), field.dataType, upsert.unavailable)
        for field in schema.fields
        if field.name not in (*upsert.keys, *upsert.sequence_by, SEQUENCE, DELETED)
    }
    return {name: F.coalesce(is_so, F.lit(False)) for name, is_so in found.items() if is_so is not None}


def newest(events: "DataFrame", upsert: Upsert, *, fill: bool = False) -> "DataFrame":
    """Return one event per key, the newest; with history, one per key and sequence.

    Of several events with the same sequence, a delete wins, and otherwise the one with the greatest offset.
    Without offsets it is an arbitrary one, but the same one whenever the batch is repeated. With `fill`, a
    placeholder is replaced by the value of the newest event that has one.
    """
    by = [*upsert.keys, *([SEQUENCE] if upsert.history else [])]
    rest = [name for name in events.columns if name not in by]
    if _has_origin(events.schema):
        ties = [F.col(f"{ORIGIN}.{field}") for field in ("offset", "partition", "topic")]
    else:
        ties = [F.to_json(F.struct(*map(column, rest)))]
    order = F.struct(SEQUENCE, DELETED, *(each.alias(f"_{n}") for n, each in enumerate(ties)))
    unavailable = unavailable_columns(events.select(*map(column, rest)).schema, upsert) if fill else {}
    winners = events.groupBy(*map(column, by)).agg(
        F.max_by(F.struct(*map(column, rest)), order).alias(_ORDER),
        *(
            F.max_by(F.struct(column(name)), F.when(~column(DELETED) & ~is_so, order)).alias(_ORDER + name)
            for name, is_so in unavailable.items()
        ),
    )
    values = {name: F.col(_ORDER).getField(name) for name in rest}
    for name in unavailable:
        is_so = is_unavailable(values[name], events.schema[name].dataType, upsert.unavailable)
        assert is_so is not None, name
        known = column(f"{_ORDER}{name}")
        values[name] = F.when(is_so & known.isNotNull(), known.getField(name)).otherwise(values[name])
    return winners.select(*map(column, by), *(value.alias(name) for name, value in values.items()))


def as_rows(events: "DataFrame", table: StructType, upsert: Upsert) -> "DataFrame":
    """Return events with the table's columns, of its types; columns that they lack are null."""
    rows = [
        converted_field(column(field.name), events.schema, field).alias(field.name)
        for field in table.fields
        if field.name not in (START_AT, END_AT) or not upsert.history
    ]
    kind = table[START_AT].dataType if upsert.history else sequence_type(table, upsert)
    return events.select(*rows, column(SEQUENCE).cast(kind).alias(SEQUENCE), DELETED)


def converted_field(value: "Column", given: StructType, wanted: StructField) -> "Column":
    """Return the value of a field as the table has it; null if the `given` fields do not include it."""
    if wanted.name not in given.fieldNames():
        return F.lit(None).cast(wanted.dataType)
    return converted(value, given[wanted.name].dataType, wanted.dataType)


def converted(value: "Column", given: DataType, wanted: DataType) -> "Column":
    """Return a value of the type `given` as one of the type `wanted`.

    Fields of structs are found by their names, as when rows are appended. Spark's `cast` goes by their
    positions, and would mix up the fields of a table that has got new ones.
    """
    if given == wanted:
        return value
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        fields = [
            converted_field(value.getField(field.name), given, field).alias(field.name)
            for field in wanted.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return F.transform(value, lambda item: converted(item, given.elementType, wanted.elementType))
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        with_keys = F.transform_keys(value, lambda key, _: converted(key, given.keyType, wanted.keyType))
        return F.transform_values(
            with_keys, lambda _, item: converted(item, given.valueType, wanted.valueType)
        )
    return value.cast(wanted)


def facts_of(events: "DataFrame", upsert: Upsert) -> Facts:
    """Count the events, and find the bounds of their keys."""
    keys = {name: _comparable(name, events.schema[name].dataType) for name in upsert.keys}
    compared = {name: each for name, each in keys.items() if each is not None}
    unavailable = F.lit(False)
    for is_so in unavailable_columns(events.schema, upsert).values():
        unavailable = unavailable | is_so
    found = events.agg(
        F.count(F.lit(1)).alias("count"),
        F.count_if(column(DELETED)).alias("deletes"),
        F.count_if(unavailable).alias("unavailable"),
        *(F.min(each).alias(f"low {name}") for name, each in compared.items()),
        *(F.max(each).alias(f"high {name}") for name, each in compared.items()),
    ).first()
    assert found is not None
    bounds = {}
    if found["count"]:
        bounds = {name: Bounds(found[f"low {name}"], found[f"high {name}"]) for name in compared}
    return Facts(
        count=found["count"], deletes=found["deletes"], unavailable=found["unavailable"], bounds=bounds
    )


def _comparable(name: str, kind: DataType) -> "Column | None":
    """Return a column as its bounds are compared (bounds.py); None if they are not."""
    if isinstance(kind, spark.DateType):
        return F.unix_date(column(name))
    if isinstance(kind, spark.TimestampType):
        return F.unix_micros(column(name))
    return column(name) if isinstance(kind, (*_INTEGERS, spark.StringType)) else None


def prefixed(frame: "DataFrame", prefix: str, columns: Iterable[str] | None = None) -> "DataFrame":
    """Return columns of a frame under other names, for a join."""
    wanted = frame.columns if columns is None else columns
    return frame.select(*(column(name).alias(f"{prefix}{name}") for name in wanted))


def same_key(upsert: Upsert, prefix: str) -> "Column":
    """Return the condition of a join with a frame that is `prefixed`."""
    found = F.lit(True)
    for name in upsert.keys:
        found = found & (column(name) == column(f"{prefix}{name}"))
    return found
