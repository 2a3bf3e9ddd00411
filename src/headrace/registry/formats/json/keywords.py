"""The drafts of JSON Schema and their keywords. A keyword that a draft does not define has no meaning."""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

Node = dict[str, Any] | bool  # a schema, or a part of one that is a schema
REFS = ("$ref", "$dynamicRef", "$recursiveRef")


class Draft(IntEnum):
    """The drafts in use, oldest first."""

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
_INTRODUCED = {
    Draft.D6: "const contains propertyNames $id",
    Draft.D7: "if then else",
    Draft.D2019: "$anchor $defs $recursiveRef dependentRequired dependentSchemas maxContains minContains "
    "unevaluatedItems unevaluatedProperties",
    Draft.D2020: "prefixItems $dynamicRef $dynamicAnchor",
}
_SINCE = {keyword: draft for draft, keywords in _INTRODUCED.items() for keyword in keywords.split()}
_UNTIL = {"id": Draft.D4, "$recursiveRef": Draft.D2019, "additionalItems": Draft.D2019}
_WITH_SCHEMA = (
    "additionalItems additionalProperties contains else if items not propertyNames then "
    "unevaluatedItems unevaluatedProperties"
)
_SCHEMAS = frozenset(_WITH_SCHEMA.split())
_LISTS = frozenset(["allOf", "anyOf", "items", "oneOf", "prefixItems"])
_MAPS = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)


def draft_of(root: Node) -> Draft:
    """Return the draft that "$schema" names; draft 7 if it names none that we know."""
    uri = root.get("$schema") if isinstance(root, dict) else None
    if not isinstance(uri, str):
        return Draft.D7
    return _BY_URI.get(uri.partition(":")[2].rstrip("#"), Draft.D7)


def known(node: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """Return the schema without keywords that its draft does not define."""
    return {
        key: value
        for key, value in node.items()
        if _SINCE.get(key, Draft.D4) <= draft <= _UNTIL.get(key, Draft.D2020)
    }


def within(node: dict[str, Any], draft: Draft) -> Iterator[Node]:
    """Yield the schemas directly within a schema."""
    for key, value in known(node, draft).items():
        if key in _LISTS and isinstance(value, list):
            yield from value
        elif key in _SCHEMAS and isinstance(value, dict | bool):
            yield value
        elif key in _MAPS and isinstance(value, dict):
            yield from (part for part in value.values() if isinstance(part, dict | bool))
