"""Avro values as plain JSON, and back: what `show` returns, `read` turns into an equal value. Pure.

Times are text in ISO 8601, decimals are text, bytes are base64. The value of a union is plain, unless another
branch has the same JSON type; then it names its branch, as in Avro's JSON encoding: {"string": "x"}.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from headrace.client.serializers.codecs.avro_leaves import (
    Misfit,
    check,
    json_type_of,
    read_leaf,
    show_leaf,
    shown_type,
)
from headrace.client.serializers.codecs.avro_misfit import named_types
from headrace.client.serializers.codecs.avro_unions import Branch, Union, chosen

_AS_THEY_ARE: Final = frozenset({bool, int, str})  # unless the type is a union


class AvroJson:
    """Converts values of one schema that fastavro has parsed; it may raise what fastavro raises, too."""

    def __init__(self, schema: Any, *, numbers: bool = False) -> None:
        """With `numbers`, `show` returns decimals as numbers, which `read` may not turn into equal values."""
        self._schema = schema
        self._numbers = numbers
        self._named = named_types(schema)
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
        return read_leaf(value, kind, path)

    def _read_record(self, value: Any, kind: Mapping[str, Any], path: str) -> dict[str, Any]:
        check(isinstance(value, dict), value, f"an object for record {kind['name']}", path)
        found = {}
        for field in kind["fields"]:
            inner = _join(path, field["name"])
            if field["name"] in value:
                found[field["name"]] = self._read(value[field["name"]], field["type"], inner)
            elif "default" not in field and not self._may_be_null(field["type"]):
                raise Misfit(inner, "is missing")
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
            self._unions[id(branches)] = Union([self._branch(each) for each in branches])
        return self._unions[id(branches)]

    def _branch(self, given: Any) -> Branch:
        kind = self._resolved(given)
        name = str(kind.get("name", kind["type"]))
        return Branch(name, kind, shown_type(kind))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
