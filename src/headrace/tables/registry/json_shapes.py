"""JSON Schema as columns: a schema that allows one kind of value, besides null, has a typed column.

All others are strings with the value as JSON.
"""

from collections.abc import Iterator
from datetime import date
from operator import methodcaller
from typing import Any, Final

import pyarrow as pa

from headrace.registry.formats.json.keywords import Node, known
from headrace.registry.formats.json.schema import JsonSchema
from headrace.tables.registry.exact import moment, truncated_moment
from headrace.tables.registry.shapes import ANYTHING, TIMESTAMP, Array, Field, Leaf, Map, Shape, Struct

_MAX_HOPS: Final = 100  # from $ref to $ref
_KINDS: Final = {bool: "boolean", int: "integer", float: "number", str: "string"}
_ANNOTATIONS: Final = {"title", "description", "$comment", "default", "examples", "deprecated"}


_PLAIN: Final = {"boolean": Leaf(pa.bool_()), "integer": Leaf(pa.int64()), "number": Leaf(pa.float64())}
_STRINGS: Final = {
    "date": Leaf(pa.date32(), date.fromisoformat),
    "date-time": Leaf(TIMESTAMP, moment, truncated_moment),
}


class JsonShapes:
    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema

    def root(self) -> Shape:
        return self._shape(self._schema.root, ())

    def _shape(self, node: Node, around: tuple[int, ...]) -> Shape:
        found = self._followed(node)
        if not isinstance(found, dict) or id(found) in around:  # true, false, or recursive
            return ANYTHING
        inside = (*around, id(found))
        parts = list(self._alternatives(found))
        if parts:
            return self._shape(parts[0], inside) if len(parts) == 1 else ANYTHING
        match _kinds(found):
            case ["object"]:
                return self._object(found, inside)
            case ["array"]:
                items = found.get("items")
                if not isinstance(items, dict) or "prefixItems" in found:
                    return ANYTHING
                return Array(self._shape(items, inside))
            case ["string"]:
                return _STRINGS.get(found.get("format", ""), Leaf(pa.string()))
            case ["integer", "number"] | ["number", "integer"]:
                return _PLAIN["number"]
            case [kind] if kind in _PLAIN:
                return _PLAIN[kind]
        return ANYTHING

    def _object(self, node: dict[str, Any], inside: tuple[int, ...]) -> Shape:
        named = dict(self._properties(node))
        if named:
            fields = (
                Field(name, methodcaller("get", name), self._shape(part, inside))
                for name, part in named.items()
            )
            return Struct(tuple(fields))
        others = node.get("additionalProperties")
        if isinstance(others, dict) and "patternProperties" not in node:
            return Map(Leaf(pa.string()), self._shape(others, inside))
        return ANYTHING

    def _properties(self, node: dict[str, Any], depth: int = 0) -> Iterator[tuple[str, Node]]:
        """Yield the properties of a schema and of the schemas in its allOf."""
        yield from node.get("properties", {}).items()
        for part in node.get("allOf", ()) if depth < _MAX_HOPS else ():
            found = self._followed(part)
            if isinstance(found, dict):
                yield from self._properties(found, depth + 1)

    def _alternatives(self, node: dict[str, Any]) -> Iterator[Node]:
        """Yield the schemas besides null that a schema combines, if it has no other constraint."""
        for keyword in ("anyOf", "oneOf"):
            if keyword in node and not node.keys() - {keyword, "type", *_ANNOTATIONS}:
                yield from (part for part in node[keyword] if not _is_null(self._followed(part)))
        if "allOf" in node and len(node["allOf"]) == 1 and not node.keys() - {"allOf", *_ANNOTATIONS}:
            yield node["allOf"][0]

    def _followed(self, node: Node) -> Node:
        resources = self._schema.resources
        for _ in range(_MAX_HOPS):
            if not isinstance(node, dict) or not resources.has(node):
                return node
            scope = resources.scope(node)
            ref = known(node, scope.draft).get("$ref")
            if not isinstance(ref, str):
                return node
            node = resources.target(ref, scope)
        return True


def _kinds(node: dict[str, Any]) -> list[str]:
    """Return the types that a value may have, besides null."""
    given = node.get("type")
    if given is None:
        values = node["enum"] if "enum" in node else [node["const"]] if "const" in node else []
        given = list(dict.fromkeys(_KINDS.get(type(value), "?") for value in values if value is not None))
        if not given and ("properties" in node or "allOf" in node):
            given = "object"
    return [each for each in ([given] if isinstance(given, str) else given) if each != "null"]


def _is_null(node: Node) -> bool:
    return isinstance(node, dict) and (node.get("type") == "null" or node.get("enum") == [None])
