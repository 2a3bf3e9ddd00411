"""JSON Schema's drafts, and which keywords each knows: what it does not know has no meaning and any form."""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

Node = dict[str, Any] | bool  # a schema, or a part of one that is a schema


class Draft(IntEnum):
    """The drafts that people use, in the order they came."""

    D4 = 4
    D6 = 6
    D7 = 7
    D2019 = 2019
    D2020 = 2020

    @property
    def uri(self) -> str:
        if self < Draft.D2019:
            return f"http://json-schema.org/draft-{self:02}/schema#"
        return f"https://json-schema.org/draft/{'2019-09' if self == Draft.D2019 else '2020-12'}/schema"


_BY_URI = {draft.uri.partition(":")[2].rstrip("#"): draft for draft in Draft}
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames", "$id"), Draft.D6),
    **dict.fromkeys(("if", "then", "else"), Draft.D7),
    **dict.fromkeys(
        ("$anchor", "$defs", "$recursiveRef", "dependentRequired", "dependentSchemas"), Draft.D2019
    ),
    **dict.fromkeys(("maxContains", "minContains", "unevaluatedItems", "unevaluatedProperties"), Draft.D2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef", "$dynamicAnchor"), Draft.D2020),
}
_UNTIL = {"id": Draft.D4, "$recursiveRef": Draft.D2019, "additionalItems": Draft.D2019}
_SCHEMAS = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
    }
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_MAPS = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


def draft_of(root: Node) -> Draft:
    """The draft that a document says it is in; the seventh if it says nothing that we know."""
    said = root.get("$schema") if isinstance(root, dict) else None
    if not isinstance(said, str):
        return Draft.D7
    return _BY_URI.get(said.partition(":")[2].rstrip("#"), Draft.D7)


def known(node: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """The schema without keywords that its draft does not know."""
    return {
        key: value
        for key, value in node.items()
        if _SINCE.get(key, Draft.D4) <= draft <= _UNTIL.get(key, Draft.D2020)
    }


def within(node: dict[str, Any], draft: Draft) -> Iterator[Node]:
    """The schemas directly within a schema."""
    for key, value in known(node, draft).items():
        if key in _LISTS and isinstance(value, list):
            yield from value
        elif key in _SCHEMAS and isinstance(value, dict | bool):
            yield value
        elif key in _MAPS and isinstance(value, dict):
            yield from (part for part in value.values() if isinstance(part, dict | bool))
