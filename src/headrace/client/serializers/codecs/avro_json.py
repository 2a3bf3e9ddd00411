"""Avro values as plain JSON, and back: what `show` returns, `read` turns into an equal value. Pure.

Times are text in ISO 8601, decimals are text, bytes are base64. The value of a union is plain, unless another
branch has the same JSON type; then it names its branch, as in Avro's JSON encoding: {"string": "x"}.
"""

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
    check,
    json_type_of,
    kind_of,
    logical_type,
    read_leaf,
    show_leaf,
    shown_type,
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
        self._by_name = {branch.name: branch for branch in branches}
        self._json_types = Counter(branch.json_type for branch in branches)
        self._unnamed = [branch for branch in branches if branch.type["type"] not in _NAMED]
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
    fitting = [branch for branch in branches if branch.json_type == json_type]
    if json_type == "number":
        fitting = _numbers(value, fitting or [branch for branch in branches if branch.type["type"] in RANGES])
        fitting = fitting or [branch for branch in branches if logical_type(branch.type) == "decimal"]
    elif json_type == "string":
        fitting = [
            each for each in fitting if each.name == "string" and not logical_type(each.type)
        ] or fitting
        if not fitting and value in NOT_FINITE:
            fitting = [branch for branch in branches if branch.name in {"float", "double"}][:1]
    elif json_type == "object" and len(fitting) > 1:
        fitting = [each for each in fitting if _has_fields_of(each.type, value)]
    if len(fitting) == 1:
        return fitting[0]
    others = [branch.name for branch in branches if branch.name != "null"]
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
    by_name = {branch.name: branch for branch in branches}
    for name in ("int", "long") if isinstance(value, int) else ():
        if name in by_name and value in RANGES[name]:
            return [by_name[name]]
    names = [each for each in by_name if each in {"float", "double"}]
    if len(names) > 1 and not _is_single(value):
        names = ["double"]
    return [by_name[each] for each in names[:1]]


def _is_single(value: float) -> bool:
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


_AS_THEY_ARE: Final = frozenset({bool, int, str})  # unless the type is a union


class AvroJson:
    """Converts values of one schema that fastavro has parsed; it may raise what fastavro raises, too."""

    def __init__(
        self,
        schema: Any,
        *,
        numbers: bool = False,
        read_leaf: Callable[[Any, Mapping[str, Any], str], Any] = read_leaf,
    ) -> None:
        """With `numbers`, `show` returns decimals as numbers, which `read` may not turn into equal values."""
        self._schema = schema
        self._numbers = numbers
        self._read_leaf = read_leaf
        self._named = _named_types(schema)
        self._unions: dict[int, Union] = {}

    # -- to JSON -------------------------------------------------------------------------------

    def show(self, value: Any) -> Any:
        """Return a value that fastavro has read with `return_named_type` as JSON."""
        return self._shown(value, self._schema)

    def _shown(self, value: Any, schema: Any) -> Any:
        if type(schema) is str and type(value) in _AS_THEY_ARE:
            return value
        kind = self._resolved(schema)
        if isinstance(kind, list):
            return self._shown_of_union(value, self._union(kind))
        if isinstance(value, dict):
            if kind["type"] == "map":
                return {name: self._shown(each, kind["values"]) for name, each in value.items()}
            return {each["name"]: self._shown(value[each["name"]], each["type"]) for each in kind["fields"]}
        if isinstance(value, list):
            return [self._shown(each, kind["items"]) for each in value]
        return float(value) if self._numbers and isinstance(value, Decimal) else show_leaf(value)

    def _shown_of_union(self, value: Any, union: Union) -> Any:
        if value is None:
            return None
        branch = union.branch_of(value)
        shown = self._shown(value[1] if isinstance(value, tuple) else value, branch.type)
        if self._numbers and isinstance(value, Decimal):
            return shown
        json_type = json_type_of(shown)
        same = union.count(json_type)
        is_not_finite = json_type != branch.json_type
        is_like_a_tag = json_type == "object" and union.tagged(shown) is not None
        if json_type != "number" and (same > 1 or (is_not_finite and same) or is_like_a_tag):
            return {branch.name: shown}
        return shown

    # -- from JSON -----------------------------------------------------------------------------

    def read(self, value: Any) -> Any:
        """Return JSON as a value that fastavro writes; Misfit if it does not fit."""
        return self._read(value, self._schema, "")

    def _read(self, value: Any, schema: Any, path: str) -> Any:
        kind = self._resolved(schema)
        if isinstance(kind, list):
            return self._read_of_union(value, self._union(kind), path)
        match kind["type"]:
            case "record" | "error":
                return self._read_record(value, kind, path)
            case "array":
                check(isinstance(value, list), value, "array", path)
                return [
                    self._read(each, kind["items"], f"{path}[{index}]") for index, each in enumerate(value)
                ]
            case "map":
                check(isinstance(value, dict), value, "map", path)
                return {
                    name: self._read(each, kind["values"], _join(path, name)) for name, each in value.items()
                }
        return self._read_leaf(value, kind, path)

    def _read_record(self, value: Any, kind: Mapping[str, Any], path: str) -> dict[str, Any]:
        check(isinstance(value, dict), value, f"an object for record {kind['name']}", path)
        found = {}
        for field in kind["fields"]:
            inner = _join(path, field["name"])
            if field["name"] in value:
                found[field["name"]] = self._read(value[field["name"]], field["type"], inner)
            elif "default" not in field and not self._may_be_null(field["type"]):
                raise Misfit(inner, "is missing", is_missing=True)
        return found

    def _may_be_null(self, schema: Any) -> bool:
        kind = self._resolved(schema)
        return any(
            each["type"] == "null" for each in map(self._resolved, kind if isinstance(kind, list) else [kind])
        )

    def _read_of_union(self, value: Any, union: Union, path: str) -> Any:
        branch = union.tagged(value)
        if branch is not None:
            (value,) = value.values()
        else:
            branch = chosen(value, union.branches, path)
        return (branch.name, self._read(value, branch.type, path))

    # -- schemas -------------------------------------------------------------------------------

    def _resolved(self, schema: Any) -> Any:
        """Return a type as an object, and a union as a list."""
        while not isinstance(schema, list):
            if isinstance(schema, str):
                return self._named.get(schema, {"type": schema})
            if not isinstance(schema["type"], Mapping | list):
                return schema
            schema = schema["type"]
        return schema

    def _union(self, branches: list[Any]) -> Union:
        if id(branches) not in self._unions:
            kinds = map(self._resolved, branches)
            self._unions[id(branches)] = Union(
                [Branch(str(kind.get("name", kind["type"])), kind, shown_type(kind)) for kind in kinds]
            )
        return self._unions[id(branches)]


def _named_types(schema: Any) -> dict[str, Any]:
    """Return the types that the schema defines, by their full names."""
    named: dict[str, Any] = {}
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, Mapping):
            if "name" in part and "type" in part and part["type"] in _NAMED:
                named[part["name"]] = part
            waiting += [field["type"] for field in part.get("fields", ())]
            waiting += [part[name] for name in ("items", "values") if name in part]
            if isinstance(part.get("type"), Mapping | list):
                waiting.append(part["type"])
    return named


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
