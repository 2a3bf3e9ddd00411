"""A JSON schema as constraints: each shape is one kind of constraint, several of them are an `allOf`.

    {"type": "string", "enum": ["a", "b"]}      ->  allOf(enum, string)
    {"type": ["integer", "null"]}               ->  anyOf(number, null)
    {"properties": {...}}                       ->  object, not strict: values of other types are valid, too

Confluent's rules are about these shapes, whatever the draft of a schema.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import re2

from headrace.registry.formats.differences import TooComplex
from headrace.registry.formats.json.keywords import REFS, Draft, Node, known
from headrace.registry.formats.json.resources import Resources
from headrace.registry.formats.json.text import dump

_BY_TYPE = {
    "string": "maxLength minLength pattern",
    "number": "maximum minimum exclusiveMaximum exclusiveMinimum multipleOf",
    "object": "properties required additionalProperties patternProperties propertyNames maxProperties "
    "minProperties dependencies dependentRequired dependentSchemas unevaluatedProperties",
    "array": "items prefixItems additionalItems unevaluatedItems contains minContains maxContains maxItems "
    "minItems uniqueItems",
}
_OF_TYPES = {kind: tuple(keywords.split()) for kind, keywords in _BY_TYPE.items()}
_COMBINATORS = ("allOf", "anyOf", "oneOf")
_PATTERN_BUDGET = 20_000  # of one comparison
_COMPILE_COST = 20  # of the budget: up to a millisecond; matching a hundred characters takes microseconds
_MAX_PATTERN_MEMORY = 1 << 17


@dataclass(eq=False)
class Shape:
    """One constraint. `kind` is a type, "enum", "const", "not", "if", a combinator, "empty" or "false"."""

    kind: str
    keywords: dict[str, Any] = field(default_factory=dict)
    draft: Draft = Draft.D7
    strict: bool = True  # whether values of other types are invalid
    integer: bool = False  # of a number
    parts: list["Shape | Node"] = field(default_factory=list)  # of a combinator

    @property
    def combined(self) -> bool:
        return self.kind in _COMBINATORS

    @cached_property
    def values(self) -> frozenset[str]:
        """The values of an enum or a const, written so that equal values are equal strings."""
        listed = self.keywords["enum"] if self.kind == "enum" else [self.keywords["const"]]
        return frozenset(dump(_plain(value), sort_keys=True) for value in listed)

    @cached_property
    def required(self) -> frozenset[str]:
        """The required properties of an object."""
        return frozenset(self.keywords.get("required", ()))

    @cached_property
    def distinct(self) -> "Shape":
        """The shape without repeated parts, which have no effect in anyOf and allOf."""
        if self.kind == "oneOf":
            return self
        keys = [id(part) if isinstance(part, Shape) else dump(part, sort_keys=True) for part in self.parts]
        parts = list(dict(zip(keys, self.parts, strict=True)).values())
        return Shape(self.kind, self.keywords, self.draft, parts=parts)

    @cached_property
    def weight(self) -> int:
        """How many names and values a comparison reads, without those of schemas within this one."""
        listed = [keyword for keyword in self.keywords.values() if isinstance(keyword, list | dict)]
        within = [names for each in listed if isinstance(each, dict) for names in each.values()]
        return sum(len(each) for each in (*listed, *(each for each in within if isinstance(each, list))))


EMPTY, FALSE = Shape("empty"), Shape("false")


class Shapes:
    """The shapes of some schemas' nodes, each made once: comparisons are keyed by their identity."""

    def __init__(self, *resources: Resources) -> None:
        self._all = resources
        self._made: dict[int, Shape] = {}
        self._budget = _PATTERN_BUDGET
        self._patterns: dict[str, re2._Regexp] = {}

    def of(self, node: "Shape | Node") -> Shape:
        match node:
            case Shape():
                return node
            case bool():
                return EMPTY if node else FALSE
        if id(node) not in self._made:
            self._made[id(node)] = EMPTY  # for a schema that refers to itself
            self._made[id(node)] = self._make(node)
        return self._made[id(node)]

    def is_kind(self, node: Node, kind: str) -> bool:
        return self.of(node).kind == kind

    def has_default(self, node: Node) -> bool:
        """Return whether a property, or the target of its $ref, has a default."""
        if not isinstance(node, dict):
            return False
        ref, resources = node.get("$ref"), self._resources(node)
        target = resources.target(ref, resources.scope(node)) if isinstance(ref, str) else node
        return "default" in node or (isinstance(target, dict) and "default" in target)

    def matches(self, pattern: str, name: str) -> bool:
        """Return whether a pattern matches a property's name, in time linear in the name.

        TooComplex is raised at the end of the budget, and for lookaround, which RE2 does not support.
        """
        self._spend(1 + len(name) // 100)
        if pattern not in self._patterns:
            self._spend(_COMPILE_COST)
            options = re2.Options()
            options.max_mem = _MAX_PATTERN_MEMORY
            options.log_errors = False
            try:
                self._patterns[pattern] = re2.compile(pattern, options)
            except re2.error as error:
                raise TooComplex from error
        return self._patterns[pattern].search(name) is not None

    def _spend(self, cost: int) -> None:
        self._budget -= cost
        if self._budget < 0:
            raise TooComplex

    def _resources(self, node: dict[str, Any]) -> Resources:
        return next(resources for resources in self._all if resources.has(node))

    def _make(self, node: dict[str, Any]) -> Shape:
        resources = self._resources(node)
        scope = resources.scope(node)
        draft, keywords = scope.draft, known(node, scope.draft)
        refs = [resources.target(keywords[ref], scope) for ref in REFS if isinstance(keywords.get(ref), str)]
        if refs and draft < Draft.D2019:  # these drafts ignore all keywords beside a $ref
            return self.of(refs[0])
        values = [Shape(kind, {kind: keywords[kind]}) for kind in ("enum", "const") if kind in keywords]
        parts = [*refs, *values, *_typed(keywords, draft), *_logic(keywords, draft)]
        if not parts:
            return EMPTY
        return self.of(parts[0]) if len(parts) == 1 else Shape("allOf", draft=draft, parts=parts)


def _typed(keywords: dict[str, Any], draft: Draft) -> list["Shape | Node"]:
    types = keywords.get("type")
    if types is None:
        implied = [kind for kind, names in _OF_TYPES.items() if any(name in keywords for name in names)]
        return [_of_type(kind, keywords, draft, strict=False) for kind in implied]
    shapes: list[Shape | Node] = [
        _of_type(kind, keywords, draft) for kind in ([types] if isinstance(types, str) else types)
    ]
    return shapes if len(shapes) == 1 else [Shape("anyOf", draft=draft, parts=shapes)]


def _of_type(kind: str, keywords: dict[str, Any], draft: Draft, *, strict: bool = True) -> Shape:
    integer, kind = kind == "integer", "number" if kind == "integer" else kind
    own = {name: keywords[name] for name in _OF_TYPES.get(kind, ()) if name in keywords}
    for exclusive, limit in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
        # In draft 4 "exclusiveMaximum" is a boolean that changes the meaning of "maximum".
        if isinstance(own.get(exclusive), bool) and own.pop(exclusive):
            own[exclusive] = own.pop(limit)
    return Shape(kind, own, draft, strict, integer)


def _logic(keywords: dict[str, Any], draft: Draft) -> list["Shape | Node"]:
    found: list[Shape | Node] = [
        Shape(kind, draft=draft, parts=list(keywords[kind])) for kind in _COMBINATORS if kind in keywords
    ]
    if "not" in keywords:
        found.append(Shape("not", {"not": keywords["not"]}, draft))
    if "if" in keywords and ("then" in keywords or "else" in keywords):
        found.append(Shape("if", {"else": True, "then": True} | keywords, draft))
    return found


def _plain(value: Any) -> Any:
    """Return the value with 1.0 as 1: JSON Schema considers them equal, but not true and 1."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
    return value
