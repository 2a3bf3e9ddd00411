"""The shapes of columns: their Arrow types, and the conversion of values to Arrow arrays.

Every format maps its schemas to these four classes. `get` and `convert` are called with the format's own
values, such as a dictionary or a Protobuf message; arrays are built column by column.

Arrow alone converts some values inexactly, such as 19.99 to the integer 19. It gets values only of the types
of Python that it stores as they are; numbers of other types are converted exactly, or do not fit.
"""

import json
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import accumulate, chain
from typing import Any, Final, TypeAlias

import pyarrow as pa

from headrace.tables.reader.errors import ReadError
from headrace.tables.registry import exact

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
Values: TypeAlias = Sequence[Any]
"""One value for each row, or None."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without parts; `convert` returns a value that Arrow accepts for the type."""

    type: pa.DataType
    convert: Callable[[Any], Any] | None = None
    truncate: Callable[[Any], Any] | None = None  # converts times whose nanoseconds are to be truncated


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a value; `get` returns it, or None."""

    name: str
    get: Callable[[Any], Any]
    shape: "Shape"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named parts of the value that `convert` returns."""

    fields: tuple[Field, ...]
    convert: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Array:
    items: "Shape"


@dataclass(frozen=True, slots=True)
class Map:
    """A value with a method `items`."""

    keys: "Shape"
    values: "Shape"


Shape: TypeAlias = Leaf | Struct | Array | Map

UNFIT: Final = (
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
    pa.ArrowException,
)
"""The exceptions of Python and Arrow for a value that does not fit its type."""
Report: TypeAlias = Callable[[int, str], None]

STORED: Final[dict[int, frozenset[type]]] = {
    number: frozenset(types)
    for types, kinds in (
        ([int], "int8 int16 int32 int64 uint8 uint16 uint32 uint64"),
        ([float], "half_float float double"),
        ([bool], "bool"),
        ([str], "string large_string string_view"),
        ([bytes], "binary large_binary binary_view fixed_size_binary"),
        ([int, Decimal], "decimal32 decimal64 decimal128 decimal256"),
        ([int, date], "date32 date64"),
        ([int, datetime], "timestamp"),
        ([int, time], "time32 time64"),
        ([int, timedelta], "duration"),
    )
    for number in (getattr(pa.lib, f"Type_{kind.upper()}") for kind in kinds.split())
}
"""The types of Python whose values Arrow stores as they are, by the id of Arrow's type."""
_CONVERTED: Final[dict[pa.DataType, Callable[[Any], Any]]] = {
    **dict.fromkeys([pa.int8(), pa.int16(), pa.int32(), pa.int64()], exact.integer),
    **dict.fromkeys([pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], exact.integer),
    pa.float16(): exact.narrow_float(16),
    pa.float32(): exact.narrow_float(32),
    pa.float64(): exact.double,
}
"""The conversions of values of other types."""


def _plain(value: Any) -> Any:
    """Return what JSON has for a value that Python's encoder does not know."""
    return exact.double(value) if isinstance(value, Decimal) else str(value)


as_json: Final = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), default=_plain)
ANYTHING: Final = Leaf(pa.string(), as_json)
"""Values that no column type fits are strings of JSON."""


def arrow_type(shape: Shape) -> pa.DataType:
    """Return the type of a column of this shape. All parts are nullable."""
    match shape:
        case Leaf():
            return shape.type
        case Struct():
            return pa.struct([(field.name, arrow_type(field.shape)) for field in shape.fields])
        case Array():
            return pa.list_(pa.field("element", arrow_type(shape.items)))  # Parquet's and Spark's name
        case Map():
            return pa.map_(arrow_type(shape.keys), arrow_type(shape.values))


def truncating(shape: Shape) -> Shape:
    """Return a shape that truncates the nanoseconds of times instead of refusing them."""
    match shape:
        case Leaf():
            return shape if shape.truncate is None else replace(shape, convert=shape.truncate)
        case Struct():
            fields = (replace(field, shape=truncating(field.shape)) for field in shape.fields)
            return replace(shape, fields=tuple(fields))
        case Array():
            return Array(truncating(shape.items))
        case Map():
            return Map(shape.keys, truncating(shape.values))


def build(shape: Shape, values: Values) -> pa.Array:
    """Return the values as an array; one of UNFIT is raised if a value does not fit."""
    kind = arrow_type(shape)
    match shape:
        case Leaf():
            return _leaves(kind, _each(shape.convert, values))
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


def _leaves(kind: pa.DataType, values: Values) -> pa.Array:
    other = set(map(type, values)) - STORED[kind.id] - {type(None)}
    if other and kind not in _CONVERTED:
        raise TypeError(f"{kind} is expected, not {other.pop().__name__}")
    return pa.array(_each(_CONVERTED[kind], values) if other else values, kind)


def build_fitting(shape: Shape, values: MutableSequence[Any], report: Report) -> pa.Array:
    """Return the array. A value that does not fit is reported, and set to None, also in `values`."""
    try:
        return build(shape, values)
    except UNFIT:
        _remove_unfit(shape, values, 0, len(values), report)
    return build(shape, values)


def _remove_unfit(shape: Shape, values: MutableSequence[Any], begin: int, end: int, report: Report) -> None:
    """Find the values that do not fit by bisection: of thousands of rows a few are wrong."""
    try:
        build(shape, values[begin:end])
    except UNFIT as error:
        if end - begin == 1:
            values[begin] = None
            report(begin, f"it does not fit the columns: {one_line(error)}")
            return
        middle = (begin + end) // 2
        _remove_unfit(shape, values, begin, middle, report)
        _remove_unfit(shape, values, middle, end, report)


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line of at most 300 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."


def columns_of(shape: Shape) -> Struct:
    """Return the columns of a shape: those of a struct, or one called `value`.

    ReadError is raised for names that differ only in case, which SQL does not distinguish.
    """
    if not isinstance(shape, Struct):
        return Struct((Field("value", lambda value: value, shape),))
    seen: dict[str, str] = {}
    for field in shape.fields:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise ReadError(
                f"the fields {other!r} and {field.name!r} of the schema differ only in case: "
                "they are the same column in SQL"
            )
    return shape


def _each(function: Callable[[Any], Any] | None, values: Values) -> Values:
    if function is None:
        return values
    if None in values:
        return [None if value is None else function(value) for value in values]
    return list(map(function, values))


def _offsets(values: Values) -> pa.Array:
    """Return the start of each value in the flat array, and null for a value that is null."""
    ends = list(accumulate((0 if value is None else len(value) for value in values), initial=0))
    begins = [None if value is None else begin for value, begin in zip(values, ends[:-1], strict=True)]
    return pa.array([*begins, ends[-1]], pa.int32())
