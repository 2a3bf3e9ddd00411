"""Topics as Polars LazyFrames: `headrace.polars.scan("orders")`. It needs `pip install 'headrace[polars]'`.

Only the columns that a query uses are read. Predicates on topic, partition, offset and timestamp make the
read shorter; Polars' own `filter` is applied to the rows in any case.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Unpack

try:
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as missing:
    raise ImportError(
        f"headrace.polars needs {missing.name}: pip install 'headrace[polars]'", name=missing.name
    ) from missing
from polars.io.plugins import register_io_source

from headrace.client.settings import Bootstrap
from headrace.tables.arrow.bounds import Bound
from headrace.tables.arrow.scan import ReadOptions, Scan
from headrace.tables.reader.columns import TYPES

__all__ = ["scan"]

_NARROWING: Final = ("topic", "partition", "offset", "timestamp")
_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "Eq": lambda one, other: one == other,
    "Gt": lambda one, other: one > other,
    "GtEq": lambda one, other: one >= other,
    "Lt": lambda one, other: one < other,
    "LtEq": lambda one, other: one <= other,
}
_SWAPPED: Final = {"Eq": "Eq", "Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq"}
_MAX_DEPTH: Final = 50  # of a predicate; a deeper one does not make the read shorter


def scan(
    topic: str | Sequence[str],
    bootstrap: Bootstrap = None,
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    **options: Unpack[ReadOptions],
) -> pl.LazyFrame:
    """Return a topic, or several, as a LazyFrame; each `collect` reads it anew. See `headrace.arrow.read`."""
    found = Scan.of(topic, bootstrap, start=start, end=end, **options)

    def rows(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        names = list(TYPES) if with_columns is None else with_columns
        used = list(dict.fromkeys([*names, *(predicate.meta.root_names() if predicate is not None else ())]))
        narrowing = None if predicate is None else narrowing_of(predicate)
        left = n_rows
        for batch in found.batches(used or ["offset"], narrowing, None if predicate is not None else n_rows):
            frame = _frame(batch)
            frame = (frame if predicate is None else frame.filter(predicate)).select(names)
            yield frame if left is None else frame.head(left)
            if left is not None:
                left -= min(left, frame.height)
                if not left:
                    return

    empty = _frame(pa.RecordBatch.from_pylist([], schema=found.arrow_schema))
    return register_io_source(rows, schema=empty.schema)


def _frame(batch: pa.RecordBatch) -> pl.DataFrame:
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame), type(frame)
    return frame


# -- predicates --------------------------------------------------------------------------------


def narrowing_of(predicate: pl.Expr) -> pc.Expression | None:
    """Return what a predicate says about topic, partition, offset and timestamp; None if it says nothing.

    The result holds for every row for which the predicate holds. Polars has no other access to the parts of
    an expression than its JSON, which may change: what is not understood does not make the read shorter.
    """
    try:
        return _narrowing(json.loads(predicate.meta.serialize(format="json")), 0)
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError, pa.ArrowException):
        return None


def _narrowing(node: Any, depth: int) -> pc.Expression | None:
    if depth > _MAX_DEPTH:
        return None
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            one, other = _narrowing(left, depth + 1), _narrowing(right, depth + 1)
            if one is None or other is None:
                return other if one is None else one
            return one & other
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            one, other = _narrowing(left, depth + 1), _narrowing(right, depth + 1)
            return None if one is None or other is None else one | other
        case {"BinaryExpr": {"left": {"Column": name}, "op": op, "right": {"Literal": _} as literal}}:
            return _comparison(name, op, literal)
        case {"BinaryExpr": {"left": {"Literal": _} as literal, "op": op, "right": {"Column": name}}}:
            return _comparison(name, _SWAPPED.get(op, ""), literal)
        case {"Function": {"input": [{"Column": name}, *literals], "function": {"Boolean": function}}}:
            return _function(name, function, literals)
    return None


def _comparison(name: str, op: str, literal: Any) -> pc.Expression | None:
    if name not in _NARROWING or op not in _COMPARE:
        return None
    value = _value(literal)
    return None if value is None else _COMPARE[op](pc.field(name), _scalar(name, value))


def _function(name: str, function: Any, literals: Sequence[Any]) -> pc.Expression | None:
    if name not in _NARROWING or not all("Literal" in literal for literal in literals):
        return None
    match function:
        case {"IsIn": _} if len(literals) == 1:
            values = _value(literals[0])
            if values is None or any(value is None for value in values):
                return None
            return pc.field(name).isin(pa.array(list(values), TYPES[name]))
        case {"IsBetween": _} if len(literals) == 2:  # whether its ends belong to it is left to Polars
            low, high = (_value(literal) for literal in literals)
            if low is None or high is None:
                return None
            return (pc.field(name) >= _scalar(name, low)) & (pc.field(name) <= _scalar(name, high))
    return None


def _value(literal: Any) -> Any:
    """Return the value of a literal, of which Polars makes sense."""
    expression = pl.Expr.deserialize(io.BytesIO(json.dumps(literal).encode()), format="json")
    found = pl.select(expression).to_series().to_list()
    return found[0] if len(found) == 1 else None


def _scalar(name: str, value: Any) -> pa.Scalar:
    """Return a value of the column's type; a number that does not fit raises an ArrowException."""
    return pa.scalar(value, TYPES[name])
