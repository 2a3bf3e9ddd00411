"""The statistics of a file in Delta's log: rows, nulls, and the bounds of each column.

Readers skip files by these bounds, so a bound may be too wide but never too narrow. Floating-point columns
have no bounds: Spark sorts NaN above all numbers, and Parquet's statistics ignore it.
"""

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.spark.tables.files import is_variant

COLUMNS: Final = 32  # Delta's default
STRING_LENGTH: Final = 32
_LAST_CHARACTER: Final = "\U0010ffff"
_EXACT_DIGITS: Final = 15  # of a decimal that a JSON number represents exactly


def statistics(metadata: pq.FileMetaData, schema: pa.Schema) -> str:
    """Return the statistics of a file with that footer, as JSON."""
    found: dict[str, Any] = {"numRecords": metadata.num_rows}
    found |= {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for index, path in list(enumerate(leaves(schema)))[:COLUMNS]:
        if path:
            groups = [metadata.row_group(n).column(index) for n in range(metadata.num_row_groups)]
            _describe(found, path, [group.statistics for group in groups])
    return json.dumps(found, separators=(",", ":"))


def leaves(fields: Iterable[pa.Field]) -> Iterator[tuple[str, ...]]:
    """Yield the path of each Parquet column; () for lists, maps and variants, which have no statistics.

    a: long, b: struct<c: int, d: list<int>> gives (a) (b, c) ().
    """
    for field in fields:
        if is_variant(field.type):
            yield from _hidden(field.type)
        elif pa.types.is_struct(field.type):
            for inner in leaves(field.type):
                yield (field.name, *inner) if inner else ()
        elif pa.types.is_map(field.type):
            yield from _hidden([field.type.key_field, field.type.item_field])
        elif pa.types.is_list(field.type):
            yield from _hidden([field.type.value_field])
        else:
            yield (field.name,)


def _hidden(fields: Iterable[pa.Field]) -> Iterator[tuple[str, ...]]:
    return (() for _ in leaves(fields))


def _describe(found: dict[str, Any], path: Sequence[str], groups: Sequence[pq.Statistics | None]) -> None:
    if any(group is None or not group.has_null_count for group in groups):
        return
    known = [group for group in groups if group is not None]
    _put(found["nullCount"], path, sum(group.null_count for group in known))
    filled = [group for group in known if group.num_values]
    if not filled or not all(group.has_min_max for group in filled):
        return
    try:
        least, most = min(group.min for group in filled), max(group.max for group in filled)
        low, high = lower_bound(least), upper_bound(most)
    except (OverflowError, ValueError):  # a date outside of the range of Python
        return
    if low is not None and high is not None:
        _put(found["minValues"], path, low)
        _put(found["maxValues"], path, high)


def _put(into: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        into = into.setdefault(name, {})
    into[path[-1]] = value


def lower_bound(value: Any) -> Any:
    """Return `value`, or a lower one that JSON can represent; None if Delta has no bounds of its type."""
    if isinstance(value, str):
        return value[:STRING_LENGTH]
    if isinstance(value, dt.datetime):
        return _milliseconds(value - dt.timedelta(microseconds=value.microsecond % 1000))
    return _exact(value)


def upper_bound(value: Any) -> Any:
    """Return `value`, or a greater one that JSON can represent; None if Delta has no bounds of its type."""
    if isinstance(value, str) and len(value) > STRING_LENGTH:
        return value[:STRING_LENGTH] + _LAST_CHARACTER if value[STRING_LENGTH] != _LAST_CHARACTER else None
    if isinstance(value, dt.datetime):
        return _milliseconds(value + dt.timedelta(microseconds=-value.microsecond % 1000))
    return _exact(value)


def _milliseconds(value: dt.datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text if value.tzinfo is None else f"{text}Z"


def _exact(value: Any) -> Any:
    if isinstance(value, bool):
        return None
    if isinstance(value, Decimal):
        return float(value) if len(value.as_tuple().digits) <= _EXACT_DIGITS else None
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if isinstance(value, int | str) else None
