"""What a JSON schema asks for, taken apart: each shape is one kind of demand, several demands are an `allOf`.

    {"type": "string", "enum": ["a", "b"]}      ->  allOf(enum, string)
    {"type": ["integer", "null"]}               ->  anyOf(number, null)
    {"properties": {...}}                       ->  object that does not insist: other types pass, too

These are the pieces that Confluent's rules speak about, whatever draft a schema is written in.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from headrace.registry.formats.json_keywords import Draft, Node, known
from headrace.registry.formats.json_patterns import Patterns
from headrace.registry.formats.json_resources import Resources
from headrace.registry.formats.json_text import dump

_OF_TYPES = {
    "string": ("maxLength", "minLength", "pattern"),
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "object": (
        *(
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "maxProperties",
        ),
        *("minProperties", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    ),
    "array": (
        *(
            "items",
            "prefixItems",
            "additionalItems",
            "unevaluatedItems",
            "contains",
            "minContains",
            "maxContains",
        ),
        *("maxItems", "minItems", "uniqueItems"),
    ),
}
_CRITERIA = ("allOf", "anyOf", "oneOf")
_REFS = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(eq=False)
class Shape:
    """One demand. `kind` is a type, "enum", "const", "not", "if", a criterion, "empty" or "false"."""

    kind: str
    keywords: dict[str, Any] = field(default_factory=dict)
    draft: Draft = Draft.D7
    strict: bool = True  # whether values of other types are refused
    integer: bool = False  # of a number
    parts: list["Shape | Node"] = field(default_factory=list)  # of a criterion

    @property
    def combined(self) -> bool:
        return self.kind in _CRITERIA

    @cached_property
    def values(self) -> frozenset[str]:
        """The values of an enum or a const, in a writing in which equal ones are the same."""
        listed = self.keywords["enum"] if self.kind == "enum" else [self.keywords["const"]]
        return frozenset(dump(_plain(value), sort_keys=True) for value in listed)

    @cached_property
    def required(self) -> frozenset[str]:
        """The names that an object has to have."""
        return frozenset(self.keywords.get("required", ()))

    @cached_property
    def distinct(self) -> "Shape":
        """Without what is written twice, which changes nothing in anyOf and allOf."""
        if self.kind == "oneOf":
            return self
        keys = [id(part) if isinstance(part, Shape) else dump(part, sort_keys=True) for part in self.parts]
        parts = list(dict(zip(keys, self.parts, strict=True)).values())
        return Shape(self.kind, self.keywords, self.draft, parts=parts)

    @cached_property
    def weight(self) -> int:
        """How many names and values one has to look at to compare it, schemas within it apart."""
        listed = [each for each in self.keywords.values() if isinstance(each, list | dict)]
        within = [names for each in listed if isinstance(each, dict) for names in each.values()]
        return sum(len(each) for each in (*listed, *(each for each in within if isinstance(each, list))))


EMPTY, FALSE = Shape("empty"), Shape("false")


class Shapes:
    """The shapes of some schemas' nodes, each made once: comparing goes by their identity."""

    def __init__(self, *resources: Resources) -> None:
        self._all = resources
        self._made: dict[int, Shape] = {}
        self.patterns = Patterns()

    def of(self, node: "Shape | Node") -> Shape:
        match node:
            case Shape():
                return node
            case bool():
                return EMPTY if node else FALSE
        if id(node) not in self._made:
            self._made[id(node)] = EMPTY  # to itself, should it be nothing but itself
            self._made[id(node)] = self._make(node)
        return self._made[id(node)]

    def has_default(self, node: Node) -> bool:
        """Whether a property has a default, itself or in what it refers to."""
        if not isinstance(node, dict):
            return False
        ref, resources = node.get("$ref"), self._resources(node)
        target = resources.target(ref, resources.place(node)) if isinstance(ref, str) else node
        return "default" in node or (isinstance(target, dict) and "default" in target)

    def _resources(self, node: dict[str, Any]) -> Resources:
        return next(resources for resources in self._all if resources.has(node))

    def _make(self, node: dict[str, Any]) -> Shape:
        resources = self._resources(node)
        place = resources.place(node)
        draft, keywords = place.draft, known(node, place.draft)
        refs = [resources.target(keywords[ref], place) for ref in _REFS if isinstance(keywords.get(ref), str)]
        if refs and draft < Draft.D2019:  # nothing beside a $ref counted then
            return self.of(refs[0])
        parts = [*refs, *_values(keywords), *_typed(keywords, draft), *_logic(keywords, draft)]
        if not parts:
            return EMPTY
        return self.of(parts[0]) if len(parts) == 1 else Shape("allOf", draft=draft, parts=parts)


def _values(keywords: dict[str, Any]) -> list["Shape | Node"]:
    return [Shape(kind, {kind: keywords[kind]}) for kind in ("enum", "const") if kind in keywords]


def _typed(keywords: dict[str, Any], draft: Draft) -> list["Shape | Node"]:
    types = keywords.get("type")
    if isinstance(types, str):
        types = [types]
    if types is None:
        asked = [kind for kind, names in _OF_TYPES.items() if any(name in keywords for name in names)]
        return [_of_type(kind, keywords, draft, strict=False) for kind in asked]
    shapes: list[Shape | Node] = [_of_type(kind, keywords, draft) for kind in types]
    return shapes if len(shapes) == 1 else [Shape("anyOf", draft=draft, parts=shapes)]


def _of_type(kind: str, keywords: dict[str, Any], draft: Draft, *, strict: bool = True) -> Shape:
    integer, kind = kind == "integer", "number" if kind == "integer" else kind
    own = {name: keywords[name] for name in _OF_TYPES.get(kind, ()) if name in keywords}
    return Shape(kind, own, draft, strict, integer)


def _logic(keywords: dict[str, Any], draft: Draft) -> list["Shape | Node"]:
    found: list[Shape | Node] = [
        Shape(criterion, draft=draft, parts=list(keywords[criterion]))
        for criterion in _CRITERIA
        if criterion in keywords
    ]
    if "not" in keywords:
        found.append(Shape("not", {"not": keywords["not"]}, draft))
    if "if" in keywords and ("then" in keywords or "else" in keywords):
        found.append(Shape("if", {"else": True, "then": True} | keywords, draft))
    return found


def _plain(value: Any) -> Any:
    """The value with 1.0 as 1, which are equal in JSON Schema; true is not 1."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
    return value
