"""Reads kio's per-version dataclasses: names, types, tags and defaults, none of its prose."""

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from pkgutil import resolve_name
from types import NoneType
from typing import Any, Final, cast, get_args

from kio.schema.index import api_key_map, schema_name_map
from kio.serial._introspect import EntityField, EntityTupleField, classify_field
from kio.static.constants import EntityType

from .model import NOT_GIVEN, FieldFacts, MessageFacts

# kio turns some numbers into richer Python types; on the wire, and with us, they are numbers.
KINDS: Final = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
KEYS: Final = {name: key for key, name in api_key_map.items()}


def schema_names() -> list[str]:
    """Every schema: the APIs by key, then headers and data schemas by name."""
    return sorted(schema_name_map, key=lambda name: (KEYS.get(name, 1 << 15), name))


def read_schema(name: str) -> Iterator[tuple[EntityType, int, MessageFacts]]:
    """Each message of a schema in each version, as (request or response or ..., version, facts)."""
    for version, paths in schema_name_map[name].items():
        for entity_type, path in paths.items():
            yield entity_type, version, _read_message(resolve_name(path))


def _read_message(cls: type[Any]) -> MessageFacts:
    structs: dict[str, tuple[FieldFacts, ...]] = {}
    _collect(cls, structs)
    return MessageFacts(cls.__name__, cls.__flexible__, structs)


def _collect(cls: type[Any], structs: dict[str, tuple[FieldFacts, ...]]) -> None:
    for field in dataclasses.fields(cls):
        nested = _struct_of(field)
        if nested is not None and nested.__name__ not in structs:
            _collect(nested, structs)
    structs[cls.__name__] = tuple(_read_field(field) for field in dataclasses.fields(cls))


def _struct_of(field: dataclasses.Field[Any]) -> type[Any] | None:
    kind = classify_field(field)
    return kind.type_ if isinstance(kind, EntityField | EntityTupleField) else None


def _read_field(field: dataclasses.Field[Any]) -> FieldFacts:
    struct = _struct_of(field)
    kio_type = struct.__name__ if struct else field.metadata["kafka_type"]
    array = "[]" if classify_field(field).is_array else ""
    return FieldFacts(
        name=_kafka_name(field.name, kio_type),
        kind=array + KINDS.get(kio_type, kio_type),
        nullable=_is_nullable(field, kio_type, array),
        tag=field.metadata.get("tag"),
        default=_default(field, kio_type, array),
    )


def _kafka_name(name: str, kio_type: str) -> str:
    """Kafka's name in snake case: kio drops the unit of a time, and avoids the names of built-ins."""
    return f"{name}_ms" if kio_type.startswith(("timedelta", "datetime")) else name.rstrip("_")


def _is_nullable(field: dataclasses.Field[Any], kio_type: str, array: str) -> bool:
    # For kio a zero uuid and a time of -1 are None; on the wire they are values like any other.
    if kio_type == "datetime_i64" or (kio_type == "uuid" and not array):
        return False
    return NoneType in get_args(field.type)


def _default(field: dataclasses.Field[Any], kio_type: str, array: str) -> Any:
    value = field.default
    if value is dataclasses.MISSING or dataclasses.is_dataclass(value):
        return NOT_GIVEN
    if kio_type == "uuid" and not array:
        return NOT_GIVEN  # zero, which kio calls None
    if array and value == ():
        return NOT_GIVEN  # kio gives every array of numbers and strings this default; Kafka does not
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if kio_type == "datetime_i64":
        assert value is None, f"{field.name} defaults to {value}"
        return -1
    return _plain(value)


def _plain(value: Any) -> Any:
    """The value without kio's subclasses of int and str."""
    for base in (bool, int, float, str):
        if isinstance(value, base):
            return base(getattr(value, "value", value))
    assert value is None, value
    return cast("Any", value)
