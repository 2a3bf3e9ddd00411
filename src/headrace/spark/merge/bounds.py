"""Which files may contain keys of a batch, by the least and the greatest value of each column.

Only types whose bounds are exact in both formats are compared, as integers or strings: dates are days, and
times are microseconds, since 1970.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Bounds(NamedTuple):
    """No value of the column is less than `low` or greater than `high`."""

    low: int | str
    high: int | str

    def overlaps(self, other: "Bounds") -> bool:
        if isinstance(self.low, str) != isinstance(other.low, str):
            return True  # not comparable
        return self.low <= other.high and other.low <= self.high  # type: ignore[operator]


def may_contain(file: Mapping[str, Bounds], keys: Mapping[str, Bounds]) -> bool:
    """Return False if no row of the file has a key within these bounds."""
    return all(file[name].overlaps(wanted) for name, wanted in keys.items() if name in file)


def comparable(value: Any) -> int | str | None:
    """Return the value of a bound as an integer or a string; None for a type that is not compared."""
    if isinstance(value, bool):
        return None
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // dt.timedelta(microseconds=1) if value.tzinfo else None
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH_DAY
    return value if isinstance(value, int | str) else None


def bounds_of(low: Any, high: Any, *, slack_us: int = 0) -> Bounds | None:
    """Return the bounds of a column; None if they are unknown.

    slack_us: how much a time may be greater than its bound, because the format has less precise bounds.
    """
    least, most = comparable(low), comparable(high)
    if least is None or most is None:
        return None
    if isinstance(high, dt.datetime):
        assert isinstance(most, int)
        most += slack_us
    return Bounds(least, most)


def known(columns: Iterable[tuple[str, Bounds | None]]) -> dict[str, Bounds]:
    return {name: found for name, found in columns if found is not None}
