"""Filter pushdown: Spark's filters on topic, partition, offset and timestamp become one filter of Arrow.

Spark applies every filter again to the rows, so a range may be too long, but never too short.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from headrace.tables.reader.offsets import Range

if TYPE_CHECKING:
    from headrace.tables.reader.narrowing import ByTime

_COMPARE: Final[Mapping[type[Filter], Callable[[Any, Any], Any]]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


def narrow(filters: Sequence[Filter], ranges: Iterable[Range], first_at: "ByTime") -> list[Range]:
    """Return the parts of `ranges` that may match all filters; `first_at` returns offsets of timestamps."""
    import pyarrow as pa  # noqa: PLC0415  few queries have filters
    import pyarrow.compute as pc  # noqa: PLC0415

    from headrace.tables.reader.narrowing import Narrowing  # noqa: PLC0415

    schema = pa.schema(
        {
            "topic": pa.string(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.timestamp("us", tz="UTC"),
        }
    )
    conditions = []
    for filter_ in filters:
        attribute: tuple[str, ...] = getattr(filter_, "attribute", ())
        given: Any = getattr(filter_, "value", None)
        if len(attribute) != 1 or attribute[0] not in schema.names or given is None:
            continue
        column, kind = pc.field(attribute[0]), schema.field(attribute[0]).type
        values = [
            value.astimezone(UTC) if isinstance(value, datetime) else value
            for value in (given if isinstance(filter_, In) else [given])
        ]
        if isinstance(filter_, In):
            conditions.append(column.isin(pa.array(values, kind)))
        elif type(filter_) in _COMPARE:
            conditions.append(_COMPARE[type(filter_)](column, pa.scalar(values[0], kind)))
    if not conditions:
        return list(ranges)
    return Narrowing(reduce(operator.and_, conditions), schema).narrow(ranges, first_at)
