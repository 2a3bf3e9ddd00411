"""What a column holds: its type in Spark, and how many values of it become one array of Arrow's.

Every format makes its schema into these four and nothing else. `get` and `convert` see the format's own
values, such as a dictionary or a Protobuf message; arrays are built by column, without a row in between.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from headrace.pipeline.errors import PipelineError

Values: TypeAlias = Sequence[Any]
"""One for each row; None where there is nothing."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without parts; `convert` makes it one that Arrow takes for the type."""

    type: DataType
    convert: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a value; `get` takes it out, and gives None where it is not there."""

    name: str
    get: Callable[[Any], Any]
    shape: "Shape"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named parts of what `convert` makes of a value."""

    fields: tuple[Field, ...]
    convert: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """As many of a kind as there are."""

    items: "Shape"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by keys, in something that has `items()`."""

    keys: "Shape"
    values: "Shape"


Shape: TypeAlias = Leaf | Struct | Array | Map

as_json: Final = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), default=str)
ANYTHING: Final = Leaf(StringType(), as_json)
"""What Spark has no type for is a string of JSON."""


def spark_type(shape: Shape) -> DataType:
    """The type of a column of this shape. Anything may be null."""
    match shape:
        case Leaf():
            return shape.type
        case Struct():
            return StructType([StructField(each.name, spark_type(each.shape)) for each in shape.fields])
        case Array():
            return ArrayType(spark_type(shape.items))
        case Map():
            return MapType(spark_type(shape.keys), spark_type(shape.values))


def build(shape: Shape, values: Values) -> pa.Array:
    """The values as an array; ValueError, TypeError and the like if one of them does not fit."""
    kind = to_arrow_type(spark_type(shape), timezone="UTC")
    match shape:
        case Leaf():
            return pa.array(_each(shape.convert, values), kind)
        case Struct():
            values = _each(shape.convert, values)
            columns = [build(field.shape, _each(field.get, values)) for field in shape.fields]
            gone = pa.array([value is None for value in values], pa.bool_())
            return pa.StructArray.from_arrays(columns, fields=list(kind), mask=gone)
        case Array():
            flat = list(chain.from_iterable(value for value in values if value is not None))
            return pa.ListArray.from_arrays(_offsets(values), build(shape.items, flat), type=kind)
        case Map():
            pairs = [pair for value in values if value is not None for pair in value.items()]
            keys = build(shape.keys, [key for key, _ in pairs])
            return pa.MapArray.from_arrays(
                _offsets(values), keys, build(shape.values, [value for _, value in pairs]), type=kind
            )


def columns_of(shape: Shape) -> Struct:
    """The shape as columns: those of a struct, or one called `value`; PipelineError if Spark mixes two up."""
    if not isinstance(shape, Struct):
        return Struct((Field("value", _itself, shape),))
    seen: dict[str, str] = {}
    for field in shape.fields:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise PipelineError(f"the fields {other!r} and {field.name!r} of the schema are one to Spark")
    return shape


def _each(function: Callable[[Any], Any] | None, values: Values) -> Values:
    if function is None:
        return values
    if None in values:
        return [None if value is None else function(value) for value in values]
    return list(map(function, values))


def _offsets(values: Values) -> pa.Array:
    """Where each begins; one that is not there has no beginning."""
    ends = list(accumulate((0 if value is None else len(value) for value in values), initial=0))
    begins = [None if value is None else begin for value, begin in zip(values, ends[:-1], strict=True)]
    return pa.array([*begins, ends[-1]], pa.int32())


def _itself(value: Any) -> Any:
    return value
