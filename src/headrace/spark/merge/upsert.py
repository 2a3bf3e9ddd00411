"""The declaration of an upsert: which columns identify a row, and which events win."""

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from headrace.spark.errors import InvalidOption

if TYPE_CHECKING:
    from pyspark.sql import Column

START_AT: Final = "__START_AT"
END_AT: Final = "__END_AT"
TOMBSTONES_FOR: Final = "2 days"
UNAVAILABLE: Final = "__debezium_unavailable_value"  # Debezium's default unavailable.value.placeholder
_DURATION: Final = re.compile(r"\s*(\d+)\s+(second|minute|hour|day|week)s?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """The rules of a MERGE.

    keys: the columns that identify a row.
    sequence_by: the columns that order the events of a key: the event with the greatest values wins.
    deletes: a condition, in SQL or as a Column; an event that meets it deletes the row of its key.
    columns, except_columns: which columns are written to the table; all of them by default.
    history: keep all versions of a row, each with the sequence of its first and of the next event (slowly
        changing dimension, type 2).
    tombstones_for: how long a deletion is remembered, so that late events do not bring the row back.
    unavailable: the placeholder of a value that the database did not log: the row keeps the one that it has.
    """

    keys: tuple[str, ...]
    sequence_by: tuple[str, ...]
    deletes: "str | Column | None" = field(default=None, compare=False)
    columns: tuple[str, ...] = ()  # empty: all
    except_columns: tuple[str, ...] = ()
    history: bool = False
    tombstones_for: dt.timedelta = dt.timedelta(days=2)
    unavailable: str = UNAVAILABLE

    @classmethod
    def of(
        cls,
        *,
        keys: str | Iterable[str],
        sequence_by: str | Iterable[str],
        deletes: "str | Column | None" = None,
        columns: Iterable[str] = (),
        except_columns: Iterable[str] = (),
        history: bool = False,
        tombstones_for: str = TOMBSTONES_FOR,
        unavailable: str = UNAVAILABLE,
    ) -> "Upsert":
        """Return the rules; InvalidOption names an argument that is not valid."""
        duration = _DURATION.fullmatch(tombstones_for)
        if duration is None:
            why = f"{tombstones_for!r} is not a duration; expected 2 days, 12 hours, ..."
            raise InvalidOption("tombstones_for", why)
        return cls(
            keys=_names("keys", keys),
            sequence_by=_names("sequence_by", sequence_by),
            deletes=deletes,
            columns=_names("columns", columns),
            except_columns=_names("except_columns", except_columns),
            history=history,
            tombstones_for=dt.timedelta(**{f"{duration[2].lower()}s": int(duration[1])}),
            unavailable=unavailable,
        )

    def __post_init__(self) -> None:
        if not self.keys:
            raise InvalidOption("keys", "missing; expected the columns that identify a row")
        if not self.sequence_by:
            raise InvalidOption("sequence_by", "missing; expected the columns that order the events of a key")
        if self.columns and self.except_columns:
            raise InvalidOption("except_columns", "give either columns or except_columns")
        for name in self.required:
            if not self.is_stored(name):
                raise InvalidOption(
                    "except_columns" if self.except_columns else "columns",
                    f"column {name!r} has to be in the table: later events are compared with it",
                )
        if both := set(self.keys) & set(self.sequence_by):
            raise InvalidOption("sequence_by", f"column {min(both)!r} is also one of the keys")

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that the table must have. With history, the sequence is in the column __START_AT."""
        return self.keys if self.history else (*self.keys, *self.sequence_by)

    @property
    def columns_of_table(self) -> tuple[str, ...]:
        """Columns that an existing table must have, because its rows are found and compared by them."""
        return (*self.required, START_AT, END_AT) if self.history else self.required

    def is_stored(self, column: str) -> bool:
        """Return whether a column of the events is written to the table."""
        if self.columns:
            return column in self.columns
        return column not in self.except_columns


def _names(argument: str, given: str | Iterable[str]) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else tuple(given)
    if len(set(found)) < len(found) or "" in found:
        raise InvalidOption(argument, f"{found!r} is not a list of different columns")
    return found
