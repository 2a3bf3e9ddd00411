"""JSON schemas, what people might make of them, and documents."""

from itertools import combinations
from typing import Any

from hypothesis import strategies as st

D7 = "http://json-schema.org/draft-07/schema#"
D2020 = "https://json-schema.org/draft/2020-12/schema"
SMALL = st.integers(0, 3)
NAMES = st.sampled_from("abc")

SCALARS = (None, True, False, -1, 0, 1, 2, 3, 4, 6, 0.5, 1.5, "", "x", "xx", "xxx", "ab")
FEW = (None, 1, 1.5, "x", "xxx")
OBJECTS = [
    *({first: one} for first in ("a", "b", "c", "ab", "d") for one in SCALARS),
    *(
        {first: one, second: other}
        for first, second in combinations(("a", "b", "c", "ab"), 2)
        for one in FEW
        for other in FEW
    ),
    *({"a": one, "b": one, "c": one} for one in SCALARS),
]
ARRAYS = [
    [],
    *([one] for one in SCALARS),
    *([one, other] for one in SCALARS for other in FEW),
    [1, 1, "x"],
    ["x"] * 3,
]
DOCUMENTS = [
    *(*SCALARS, {}, *OBJECTS, *ARRAYS),
    *({name: inner} for name in "ab" for inner in ({}, *OBJECTS, *ARRAYS)),
    *([inner] for inner in OBJECTS),
    *(["x", inner] for inner in (*ARRAYS, *OBJECTS[::7])),
]
scalars = st.sampled_from(SCALARS)
documents = st.sampled_from(DOCUMENTS)


def schemas(depth: int) -> st.SearchStrategy[Any]:
    """Schemas without what Confluent's rules trust people with: no oneOf, no defaults."""
    simple = st.one_of(
        strings(),
        numbers(),
        st.sampled_from([{"type": "null"}, {"type": "boolean"}, {}, True, False]),
        values(),
    )
    if depth <= 0:
        return simple
    inner = schemas(depth - 1)
    return st.one_of(
        simple,
        some_type(objects(inner), "object"),
        some_type(arrays(inner), "array"),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"allOf": parts}),
        inner.map(lambda part: {"not": part}),
        st.tuples(inner, inner, inner).map(
            lambda parts: dict(zip(("if", "then", "else"), parts, strict=True))
        ),
    )


@st.composite
def keywords(draw: st.DrawFn, /, **strategies: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Some of them, seldom all."""
    names = draw(st.lists(st.sampled_from(sorted(strategies)), min_size=1, max_size=3, unique=True))
    return {name: draw(strategies[name]) for name in names}


def some_type(described: st.SearchStrategy[dict[str, Any]], *types: str) -> st.SearchStrategy[dict[str, Any]]:
    """With its type, with one more, or without."""
    named = st.sampled_from([*types, *types, [types[0], "null"], None])
    return st.tuples(described, named).map(lambda both: {**({"type": both[1]} if both[1] else {}), **both[0]})


def strings() -> st.SearchStrategy[dict[str, Any]]:
    return some_type(
        keywords(minLength=SMALL, maxLength=SMALL, pattern=st.sampled_from(["x", "^x+$"])), "string"
    )


def numbers() -> st.SearchStrategy[dict[str, Any]]:
    limits = dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), SMALL)
    return some_type(keywords(**limits, multipleOf=st.sampled_from([1, 2, 3, 0.5])), "integer", "number")


def values() -> st.SearchStrategy[dict[str, Any]]:
    return st.lists(scalars, min_size=1, max_size=3).map(lambda listed: {"enum": listed}) | scalars.map(
        lambda value: {"const": value}
    )


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return keywords(
        properties=st.dictionaries(NAMES, inner, max_size=3),
        required=st.lists(NAMES, max_size=2, unique=True),
        additionalProperties=st.just(False) | inner,
        patternProperties=st.dictionaries(st.sampled_from(["^a", "b"]), inner, min_size=1, max_size=2),
        minProperties=SMALL,
        maxProperties=SMALL,
        propertyNames=strings(),
        dependencies=st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True) | inner, max_size=2),
    )


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return keywords(
        items=inner | st.lists(inner, min_size=1, max_size=2),
        additionalItems=st.just(False) | inner,
        minItems=SMALL,
        maxItems=SMALL,
        uniqueItems=st.booleans(),
        contains=inner,
    )


class Evolution:
    """A schema that people might make of an older one: some changes are compatible, some are not."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def of(self, schema: Any, most: int = 11) -> Any:
        """The less `most` is, the more happens to the schema itself; little happens to those within."""
        if not isinstance(schema, dict):
            return self._draw(schemas(0)) if self._draw(st.integers(0, 3)) == 0 else schema
        kept = {key: self._value(key, value) for key, value in schema.items()}
        match self._draw(st.integers(0, most)):
            case 0 if kept:
                del kept[self._draw(st.sampled_from(sorted(kept)))]
            case 1:
                kept = {**self._draw(like(schema)), **kept}
            case 2:
                kept = {**kept, **self._draw(like(schema))}
        return kept

    def _value(self, keyword: str, value: Any) -> Any:
        match value:
            case dict() if keyword in {"properties", "patternProperties", "dependencies"}:
                return self._named(value)
            case dict() if keyword != "const":
                return self.of(value)
            case list() if keyword in {"items", "anyOf", "allOf"}:
                return [self.of(part) for part in value]
            case list() if keyword in {"enum", "required"} and len(value) > 1 and self._draw(st.booleans()):
                return value[1:]
        return value

    def _named(self, parts: dict[str, Any]) -> dict[str, Any]:
        kept = {name: part if isinstance(part, list) else self.of(part) for name, part in parts.items()}
        if kept and self._draw(st.integers(0, 3)) == 0:
            del kept[self._draw(st.sampled_from(sorted(kept)))]
        return kept


def like(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """One keyword for a schema of the same type, perhaps the type itself."""
    families = {
        "object": objects(schemas(0)),
        "array": arrays(schemas(0)),
        "string": strings(),
        "number": numbers(),
    }
    for name, words in WORDS.items():
        if schema.get("type") == name or words & schema.keys():
            return families[name].filter(bool).flatmap(one_of_its_keywords)
    return st.sampled_from([{}, {"title": "T"}])


def one_of_its_keywords(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(sorted(schema)).map(lambda keyword: {keyword: schema[keyword]})


WORDS = {
    "object": {"properties", "required", "additionalProperties", "patternProperties", "minProperties"}
    | {"maxProperties", "propertyNames", "dependencies"},
    "array": {"items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"},
    "string": {"minLength", "maxLength", "pattern"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}


def in_draft(schema: Any, draft: str) -> Any:
    """A schema of draft 7, or the same in the words of draft 2020-12."""
    root = _reworded(schema) if draft == D2020 else schema
    return {"$schema": draft, **root} if isinstance(root, dict) else root


def _reworded(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    words: dict[str, Any] = {}
    for key, value in schema.items():
        match key, value:
            case "items", list():
                words["prefixItems"] = [_reworded(part) for part in value]
            case "additionalItems", _:
                if isinstance(schema.get("items"), list):
                    words["items"] = _reworded(value)
            case (("properties" | "patternProperties" | "dependencies"), dict()):
                words[key] = {name: _reworded(part) for name, part in value.items()}
            case (("anyOf" | "allOf"), list()):
                words[key] = [_reworded(part) for part in value]
            case (("enum" | "const"), _):
                words[key] = value
            case _:
                words[key] = _reworded(value)
    return words


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any]:
    """An old schema and a new one."""
    kinds = {
        "object": some_type(objects(schemas(1)), "object"),
        "array": some_type(arrays(schemas(1)), "array"),
    }
    old = draw(kinds.get(draw(st.sampled_from(["object", "object", "array", "any"])), schemas(2)))
    new = Evolution(draw).of(old, most=2)
    drafts = draw(st.sampled_from([(D7, D7), (D2020, D2020), (D7, D2020)]))
    return in_draft(old, drafts[0]), in_draft(new, drafts[1])
