"""JSON schemas, what people might make of them, and documents."""

from typing import Any

from hypothesis import strategies as st

D7 = "http://json-schema.org/draft-07/schema#"
D2020 = "https://json-schema.org/draft/2020-12/schema"
SMALL = st.integers(0, 3)
NAMES = st.sampled_from("abc")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 6),
    st.sampled_from([0.5, 1.5, 2.0]),
    st.sampled_from(["", "x", "xx", "xxx", "ab"]),
)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "ab"]), inner, max_size=3)
    ),
    max_leaves=6,
)


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


def keywords(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of them, seldom all."""
    return st.fixed_dictionaries({}, optional=strategies).flatmap(
        lambda given: st.sets(st.sampled_from(sorted(strategies)), max_size=3).map(
            lambda kept: {key: value for key, value in given.items() if key in kept}
        )
    )


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

    def of(self, schema: Any) -> Any:
        if not isinstance(schema, dict) or self._seldom():
            return self._draw(schemas(1)) if self._seldom() else schema
        kept = {key: self._value(key, value) for key, value in schema.items() if not self._seldom()}
        return {**self._draw(schemas_like(schema)), **kept} if self._seldom() else kept

    def _seldom(self) -> bool:
        return bool(self._draw(st.integers(0, 7)) == 0)

    def _value(self, keyword: str, value: Any) -> Any:
        match value:
            case bool() | str():
                return value
            case int() if keyword != "const" and self._seldom():
                return max(1, value + self._draw(st.sampled_from([-1, 1])))
            case dict() if keyword in {"properties", "patternProperties", "dependencies"}:
                return {name: self._part(part) for name, part in value.items() if not self._seldom()}
            case dict():
                return self.of(value)
            case list() if keyword in {"items", "anyOf", "allOf"}:
                return [self.of(part) for part in value]
            case list() if keyword in {"enum", "required"} and len(value) > 1 and self._seldom():
                return value[1:]
        return value

    def _part(self, part: Any) -> Any:
        return part if isinstance(part, list) else self.of(part)


def schemas_like(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Keywords for a schema of the same type."""
    match schema.get("type"):
        case "string":
            return strings()
        case "object":
            return objects(schemas(0))
        case "array":
            return arrays(schemas(0))
    return numbers()


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
def cases(draw: st.DrawFn) -> tuple[Any, Any, list[Any]]:
    """An old schema, a new one, and documents that may be valid."""
    old = draw(schemas(2))
    new = Evolution(draw).of(old)
    drafts = draw(st.sampled_from([(D7, D7), (D2020, D2020), (D7, D2020)]))
    return (
        in_draft(old, drafts[0]),
        in_draft(new, drafts[1]),
        draw(st.lists(documents, min_size=10, max_size=30)),
    )
