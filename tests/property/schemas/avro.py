"""Avro schemas, what people might make of them, and values."""

from typing import Any

from hypothesis import strategies as st

primitives = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
DEFAULTS: dict[str, Any] = {"null": None, "boolean": True, "int": 1, "long": 2, "float": 1.5, "double": 2.5}
DEFAULTS |= {"bytes": "b", "string": "s"}


@st.composite
def enums(draw: st.DrawFn, name: str) -> dict[str, Any]:
    symbols = draw(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True))
    default = {"default": draw(st.sampled_from(symbols))} if draw(st.booleans()) else {}
    return {"type": "enum", "name": name, "symbols": symbols, **default}


@st.composite
def fields(draw: st.DrawFn, name: str, depth: int, path: str) -> dict[str, Any]:
    type_ = draw(types(depth, f"{path}_{name}"))
    described: dict[str, Any] = {"name": name, "type": type_}
    if isinstance(type_, str) and draw(st.booleans()):
        described["default"] = DEFAULTS[type_]
    return described


@st.composite
def records(draw: st.DrawFn, depth: int, path: str) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True))
    listed = [draw(fields(name, depth - 1, path)) for name in names]
    if draw(st.booleans()):
        listed.append({"name": "more", "type": ["null", path], "default": None})
    return {"type": "record", "name": path, "fields": listed}


@st.composite
def unions(draw: st.DrawFn, depth: int, path: str) -> list[Any]:
    branches: list[Any] = draw(st.lists(primitives, max_size=3, unique=True))
    if draw(st.booleans()):
        branches.append(draw(records(depth - 1, f"{path}_u")))
    return branches or ["null"]


def types(depth: int, path: str) -> st.SearchStrategy[Any]:
    """A type for a place; named by its place, so that two schemas have types of the same names."""
    fixed = st.integers(1, 2).map(lambda size: {"type": "fixed", "name": f"{path}_f", "size": size})
    if depth <= 0:
        return primitives
    inner = types(depth - 1, f"{path}_i")
    return st.one_of(
        primitives,
        enums(f"{path}_e"),
        fixed,
        unions(depth, path),
        records(depth, path),
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda values: {"type": "map", "values": values}),
    )


class Values:
    """Values of an Avro type, drawn. Strings are of ASCII: bytes that are not UTF-8 cannot become strings."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._named: dict[str, Any] = {}

    def of(self, type_: Any, depth: int = 0) -> Any:
        match type_:
            case str() if type_ in self._named:
                return self.of(self._named[type_], depth)
            case str():
                return self._draw(PRIMITIVE_VALUES[type_])
            case list():
                return self._of_union(type_, depth)
            case {"type": "enum"}:
                return self._draw(st.sampled_from(type_["symbols"]))
            case {"type": "fixed"}:
                return b"x" * type_["size"]
            case {"type": "array"}:
                return [self.of(type_["items"], depth + 1) for _ in range(self._draw(st.integers(0, 2)))]
            case {"type": "map"}:
                return {
                    key: self.of(type_["values"], depth + 1)
                    for key in self._draw(st.sets(st.sampled_from("kl")))
                }
        self._named[type_["name"]] = type_
        return {field["name"]: self.of(field["type"], depth + 1) for field in type_["fields"]}

    def _of_union(self, branches: list[Any], depth: int) -> Any:
        for branch in branches:
            if isinstance(branch, dict):
                self._named[branch["name"]] = branch
        branch = branches[0] if depth > 4 else self._draw(st.sampled_from(branches))
        known = branch["name"] if isinstance(branch, dict) else branch
        return (known, self.of(branch, depth + 1))


PRIMITIVE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=3).map(lambda value: bytes(byte & 127 for byte in value)),
    "string": st.text(st.characters(max_codepoint=127), max_size=3),
}


class Evolution:
    """A schema that people might make of an older one: some changes are compatible, some are not."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def of(self, type_: Any) -> Any:
        if self._draw(st.integers(0, 3)) == 0:
            return self._changed(type_)
        match type_:
            case list():
                return [self.of(branch) if isinstance(branch, dict) else branch for branch in type_]
            case {"type": "record"}:
                return {**type_, "fields": [self._field(field) for field in type_["fields"]]}
            case {"type": "array"}:
                return {**type_, "items": self.of(type_["items"])}
            case {"type": "map"}:
                return {**type_, "values": self.of(type_["values"])}
        return type_

    def _field(self, field: dict[str, Any]) -> dict[str, Any]:
        changed = self.of(field["type"])
        kept = field if changed == field["type"] else {"name": field["name"], "type": changed}
        if self._draw(st.integers(0, 5)) == 0:
            renamed = (
                f"new_{field['name']}"  # no other field's name: libraries differ on what an alias means then
            )
            return {**kept, "name": renamed, "aliases": [field["name"]]}
        return kept

    def _changed(self, type_: Any) -> Any:
        match type_:
            case str() if type_ in DEFAULTS:
                return self._draw(primitives)
            case list():
                return [*type_, *({"null", "string"} - {str(branch) for branch in type_})]
            case {"type": "enum"}:
                return self._draw(enums(type_["name"]))
            case {"type": "record"}:
                kept = [field for field in type_["fields"] if self._draw(st.booleans())]
                default = {"default": 5} if self._draw(st.booleans()) else {}
                return {**type_, "fields": [*kept, {"name": "added", "type": "int", **default}]}
            case dict() if "name" not in type_:
                return ["null", type_]
        return type_


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """An old schema, a value of it, and a new schema."""
    old = draw(types(3, "R"))
    return old, Values(draw).of(old), Evolution(draw).of(old)
