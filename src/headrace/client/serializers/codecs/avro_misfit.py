"""Why a value does not fit an Avro schema: the first field that is missing or has another type. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

MAX_DEPTH: Final = 100
_NUMBERS: Final = {"int", "long", "float", "double"}
_KINDS: Final = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}


class Misfit(NamedTuple):
    """One field that does not fit."""

    sentence: str
    is_missing: bool = False
    is_not_object: bool = False  # for a record


def misfit(value: Any, schema: Any) -> str:
    """Return what is wrong, as "the field address.street is missing"; empty if that is not clear.

    `value` is JSON, and `schema` is one that fastavro has parsed.
    """
    return next((each.sentence for each in _all_misfits(value, schema)), "")


def missing_field(value: Any, schema: Any) -> str:
    """Return the same about the first missing field only; `value` may have objects such as datetime."""
    return next((each.sentence for each in _all_misfits(value, schema) if each.is_missing), "")


def first_non_object(value: Any, schema: Any) -> str:
    """Return the same about the first value of a record that is not an object."""
    return next((each.sentence for each in _all_misfits(value, schema) if each.is_not_object), "")


def _all_misfits(value: Any, schema: Any) -> "Iterator[Misfit]":
    return _misfits(value, schema, named_types(schema), "", MAX_DEPTH)


def named_types(schema: Any) -> dict[str, Any]:
    """Return the types that the schema defines, by their full names."""
    found: dict[str, Any] = {}
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, Mapping):
            if "name" in each and "type" in each and each["type"] in {"record", "error", "enum", "fixed"}:
                found[each["name"]] = each
            waiting += [field["type"] for field in each.get("fields", ())]
            waiting += [each[name] for name in ("items", "values") if name in each]
            if isinstance(each.get("type"), Mapping | list):
                waiting.append(each["type"])
    return found


def _misfits(value: Any, schema: Any, named: Mapping[str, Any], path: str, depth: int) -> Iterator[Misfit]:
    if not depth:
        return
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    if isinstance(schema, list):
        yield from _of_union(value, schema, named, path, depth)
        return
    kind = schema["type"]
    if isinstance(kind, Mapping | list):
        yield from _misfits(value, kind, named, path, depth - 1)
    elif kind in {"record", "error"}:
        yield from _of_record(value, schema, named, path, depth)
    elif kind in {"array", "map"} and isinstance(value, list if kind == "array" else dict):
        for name, each in _items(value):
            inner = schema["items" if kind == "array" else "values"]
            yield from _misfits(each, inner, named, f"{path}{name}".lstrip("."), depth - 1)
    else:
        kind = schema["type"]
        if not _is_of(value, kind):
            yield Misfit(f"{_where(path)} is {_kind(value)}, expected {kind}")
        elif kind == "enum" and value not in schema["symbols"]:
            yield Misfit(
                f"{_where(path)} is {value[:80]!r}, expected one of {', '.join(schema['symbols'][:20])}"
            )


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a list or an object, each with the end of its path."""
    if isinstance(value, list):
        yield from ((f"[{index}]", each) for index, each in enumerate(value))
    else:
        yield from ((f".{name}", each) for name, each in value.items())


def _of_record(
    value: Any, schema: Mapping[str, Any], named: Mapping[str, Any], path: str, depth: int
) -> Iterator[Misfit]:
    if not isinstance(value, dict):
        sentence = f"{_where(path)} is {_kind(value)}, expected an object for record {schema['name']}"
        yield Misfit(sentence, is_not_object=True)
        return
    for field in schema["fields"]:
        inner = f"{path}.{field['name']}".lstrip(".")
        if field["name"] in value:
            yield from _misfits(value[field["name"]], field["type"], named, inner, depth - 1)
        elif "default" not in field and not _may_be_null(field["type"]):
            yield Misfit(f"the field {inner} is missing", is_missing=True)


def _of_union(
    value: Any, branches: list[Any], named: Mapping[str, Any], path: str, depth: int
) -> Iterator[Misfit]:
    if value is None and _may_be_null(branches):
        return
    others = [each for each in branches if each != "null"]
    if isinstance(value, dict) and len(value) == 1:  # as Avro's JSON encoding names the branch of a union
        (name,) = value
        for each in others:
            if name in (each, each.get("name") if isinstance(each, Mapping) else None):
                yield from _misfits(value[name], each, named, path, depth - 1)
                return
    if len(others) == 1:
        yield from _misfits(value, others[0], named, path, depth - 1)
    elif all(next(_misfits(value, each, named, path, depth - 1), None) for each in others):
        yield Misfit(f"{_where(path)} is {_kind(value)}, which fits no branch of its union")


def _may_be_null(schema: Any) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


def _is_of(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in _NUMBERS:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (kind in {"float", "double"} or isinstance(value, int))
    if kind in {"string", "bytes", "fixed", "enum"}:
        return isinstance(value, str)
    return kind not in {"array", "map"}


def _where(path: str) -> str:
    return f"the field {path}" if path else "the value"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else _KINDS.get(type(value), type(value).__name__)
