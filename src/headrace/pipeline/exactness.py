"""Whether the columns that Spark parses from JSON, CSV or text have the values that were written.

Spark rounds decimals, reads 1e400 as Infinity, cuts nanoseconds, takes the last of two equal keys and ignores
what follows a JSON object. A pattern finds the few records with a number or a time of which Spark may lose
something, and a scan those with the rest; these are parsed once more, in Python, and compared with what the
types of the columns hold.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf

from headrace.tables.reader.json_scan import odd_texts
from headrace.tables.registry import exact
from headrace.tables.registry.json_rows import decode_decimals, members
from headrace.tables.registry.reader import Unreadable
from headrace.tables.registry.shapes import UNFIT, as_json, one_line

if TYPE_CHECKING:
    from pyspark.sql import Column

_MAX_SECONDS: Final = 2**63 // 1_000_000  # of a timestamp
_DAY: Final = re.compile(r"[+-]?[0-9]{4,}-[0-9]{1,2}-[0-9]{1,2}")
_SCANNER: Final = json.JSONDecoder(object_pairs_hook=members)
_single: Final = exact.narrow_float(32)


def inexact_json(text: "Column", schema: T.StructType) -> "Column":
    """Return why columns do not have the values of JSON objects, or null."""
    pattern, kind = _pattern(schema, is_json=True), schema.json()

    def check(texts: pa.Array) -> pa.Array:
        # Arrow's expressions take a tenth of the time of Java's.
        inexact = np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern), fill_value=False))
        found: list[str | None] = [None] * len(texts)
        for row in np.flatnonzero(inexact | odd_texts(texts)).tolist():
            one = texts[row].as_py()
            found[row] = reason(_parsed(kind), one) if inexact[row] else not_one_object(one)
        return pa.array(found, pa.string())

    found: Column = arrow_udf(check, T.StringType())(F.when(F.is_valid_utf8(text), text))  # type: ignore[call-overload]
    return found


def inexact(text: "Column", schema: T.StructType, row: "Column") -> "Column":
    """Return why columns do not have the values of a text, or null; `row` is the text as a JSON object."""
    kind = schema.json()

    def check(texts: pa.Array) -> pa.Array:
        found = [None if each is None else reason(_parsed(kind), each) for each in texts.to_pylist()]
        return pa.array(found, pa.string())

    odd = F.when(F.is_valid_utf8(text) & text.rlike(_pattern(schema, is_json=False)), row)
    found: Column = arrow_udf(check, T.StringType())(odd)  # type: ignore[call-overload]
    return found


def not_one_object(text: str) -> str | None:
    """Return why a text, which begins with a JSON object, is not exactly one with each key once, or None."""
    try:
        _SCANNER.decode(text)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {one_line(error)}"
    return None


def _pattern(schema: T.StructType, *, is_json: bool) -> str:
    """Return the pattern of numbers and times that a type of the schema may not hold."""
    types = list(_leaves(schema))
    # A number is not within quotes: the seconds of 12:00:00.123 are none.
    before = r"(?:[^0-9]:|[\[,])\s*-?" if is_json else ""
    digits = 7 if T.FloatType() in types else 15
    parts = [rf"{before}(?:[0-9][0-9.]{{{digits}}}|[0-9.]+[eE])"]
    if scales := [each.scale for each in types if isinstance(each, T.DecimalType)]:
        parts.append(rf"{before}[0-9]*\.[0-9]{{{min(scales) + 1}}}")
    if any(isinstance(each, T.TimestampType | T.TimestampNTZType) for each in types):
        parts += [r":[0-9]{2}[.,][0-9]{7}", rf"{before}[0-9]{{13}}"]
    if T.DateType() in types:
        parts.append(r"[0-9]{4}-[0-9]{1,2}(?:\"|-[0-9]{1,2}[T ])")
    if T.StringType() in types and is_json:
        parts.append(r"\\u[dD][89a-fA-F]")  # half of a pair
    return "|".join(parts)


def _leaves(kind: T.DataType) -> Iterator[T.DataType]:
    match kind:
        case T.StructType():
            for field in kind.fields:
                yield from _leaves(field.dataType)
        case T.ArrayType():
            yield from _leaves(kind.elementType)
        case T.MapType():
            yield from _leaves(kind.valueType)
        case _:
            yield kind


@lru_cache(maxsize=32)
def _parsed(schema: str) -> T.StructType:
    return T.StructType.fromJson(json.loads(schema))


def reason(schema: T.StructType, text: str) -> str | None:
    """Return why columns of a schema cannot hold the values of a JSON object exactly, or None."""
    try:
        _compare(schema, decode_decimals(text.encode()))
    except Unreadable as error:
        return str(error)
    except UNFIT as error:
        return f"it does not fit the columns: {one_line(error)}"
    return None


def _compare(kind: T.DataType, value: Any) -> None:
    """Raise one of UNFIT if a type of Spark does not hold a value exactly."""
    match kind, value:
        case _, None:
            pass
        case T.StructType(), dict():
            for field in kind.fields:
                _compare(field.dataType, value.get(field.name))
        case T.ArrayType(), list():
            for each in value:
                _compare(kind.elementType, each)
        case T.MapType(), dict():
            for each in value.values():
                _compare(kind.valueType, each)
        case _:
            _compare_leaf(kind, value)


def _compare_leaf(kind: T.DataType, value: Any) -> None:
    match kind:
        case T.DoubleType():
            exact.double(value)
        case T.FloatType():
            _single(value)
        case T.DecimalType():
            exact.decimal(kind.scale)(value)
        case T.StringType():
            (value if isinstance(value, str) else as_json(value)).encode()
        case T.TimestampType() | T.TimestampNTZType():
            if isinstance(value, str):
                exact.refuse_nanoseconds(value)
            elif isinstance(value, int) and abs(value) >= _MAX_SECONDS:
                raise ValueError(f"{value!s:.60} is too large for a timestamp in seconds")
        case T.DateType() if isinstance(value, str) and not _DAY.fullmatch(value):
            raise ValueError(f"{value:.60} is not a date")
