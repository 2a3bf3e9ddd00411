"""Which branch of an Avro union a value is of, by its JSON type and by the name that it may have. Pure."""

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from headrace.client.serializers.codecs.avro_leaves import (
    NOT_FINITE,
    RANGES,
    Misfit,
    json_type_of,
    kind_of,
    logical_type,
)


class Branch(NamedTuple):
    """A branch of a union."""

    name: str  # as Avro's JSON encoding has it, and fastavro
    type: Any  # resolved
    json_type: str


_READ_AS: Final[Mapping[type, Callable[[str, str], bool]]] = {
    bool: lambda kind, _: kind == "boolean",
    int: lambda kind, logical: kind in {"int", "long"} and not logical,
    float: lambda kind, _: kind in {"float", "double"},
    str: lambda kind, logical: kind == "string" and not logical,
    bytes: lambda kind, logical: kind == "bytes" and not logical,
    datetime: lambda _, logical: "timestamp" in logical,
    date: lambda _, logical: logical == "date",
    time: lambda _, logical: logical.startswith("time-"),
    Decimal: lambda _, logical: logical == "decimal",
    UUID: lambda _, logical: logical == "uuid",
    list: lambda kind, _: kind == "array",
    dict: lambda kind, _: kind == "map",
}
"""For each type of Python, whether fastavro returns it for an Avro type that has no name."""


_NAMED: Final = {"record", "error", "enum", "fixed"}
"""Types whose values fastavro returns with their names."""


class Union:
    """The branches of a union; finding the branch of a value takes no longer if there are many."""

    def __init__(self, branches: list[Branch]) -> None:
        self.branches = branches
        self._by_name = {each.name: each for each in branches}
        self._json_types = Counter(each.json_type for each in branches)
        self._unnamed = [each for each in branches if each.type["type"] not in _NAMED]
        self._read_as: dict[type, list[Branch]] = {}

    def branch_of(self, value: Any) -> Branch:
        """Return a branch that fastavro may have read a value of."""
        if isinstance(value, tuple):
            return self._by_name[value[0]]
        fitting = self._read_as.get(type(value))
        if fitting is None:
            fits = _READ_AS[type(value)]
            fitting = [each for each in self._unnamed if fits(each.type["type"], logical_type(each.type))]
            self._read_as[type(value)] = fitting
        if isinstance(value, time) and value.microsecond % 1000:
            return next(each for each in fitting if logical_type(each.type) == "time-micros")
        return fitting[0]

    def tagged(self, value: Any) -> Branch | None:
        """Return the branch that a value names as {"string": "x"}; None if it names none."""
        if not isinstance(value, dict) or len(value) != 1:
            return None
        (name,) = value
        return self._by_name.get(name) if name != "null" else None

    def count(self, json_type: str) -> int:
        """Return how many branches have values of a JSON type."""
        return self._json_types[json_type]


def chosen(value: Any, branches: list[Branch], path: str) -> Branch:
    """Return the branch for a value that names none; Misfit if there is none, or if there are several."""
    json_type = json_type_of(value)
    fitting = [each for each in branches if each.json_type == json_type]
    if json_type == "number":
        fitting = _numbers(value, fitting or [each for each in branches if each.type["type"] in RANGES])
        fitting = fitting or [each for each in branches if logical_type(each.type) == "decimal"]
    elif json_type == "string":
        fitting = [
            each for each in fitting if each.name == "string" and not logical_type(each.type)
        ] or fitting
        if not fitting and value in NOT_FINITE:
            fitting = [each for each in branches if each.name in {"float", "double"}][:1]
    elif json_type == "object" and len(fitting) > 1:
        fitting = [each for each in fitting if _has_fields_of(each.type, value)]
    if len(fitting) == 1:
        return fitting[0]
    others = [each.name for each in branches if each.name != "null"]
    if not fitting and len(others) == 1:
        raise Misfit(path, f"is {kind_of(value)}, expected {others[0]}")
    if not fitting:
        raise Misfit(path, f"is {kind_of(value)}, which fits no branch of its union: {', '.join(others)}")
    names = [each.name for each in fitting]
    raise Misfit(
        path, f'may be {" or ".join(names)} of its union: name the branch, as in {{"{names[0]}": …}}'
    )


def _numbers(value: float, branches: list[Branch]) -> list[Branch]:
    """Return the first branch for a number: a whole one prefers int and long."""
    by_name = {each.name: each for each in branches}
    for name in ("int", "long") if isinstance(value, int) else ():
        if name in by_name and value in RANGES[name]:
            return [by_name[name]]
    names = [each for each in by_name if each in {"float", "double"}]
    if len(names) > 1 and not _is_single(value):
        names = ["double"]
    return [by_name[each] for each in names[:1]]


def _is_single(value: float) -> bool:
    """Return whether a number of 32 bits has the value."""
    try:
        return bool(struct.unpack("<f", struct.pack("<f", value))[0] == value)
    except OverflowError:
        return False


def _has_fields_of(kind: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Return whether an object has the fields of a record; those with defaults may be missing."""
    if kind["type"] == "map":
        return False
    required = {each["name"] for each in kind["fields"] if "default" not in each}
    return required <= value.keys() <= {each["name"] for each in kind["fields"]}
