"""Unions of more than null and one other type: a struct with a field for each branch, of which one is set.

fastavro names the type of a value in a union, as ("shop.Order", {...}), if the type has a name and the
writer's schema has the union. Where it does not, the value tells by itself which branch it is of.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from headrace.pipeline.registry.shapes import Field, Shape
from headrace.registry.formats.avro_types import AvroType

_PYTHONS: Final[dict[type, tuple[str, ...]]] = {
    bool: ("boolean",),
    int: ("long", "int", "double", "float"),
    float: ("double", "float"),
    str: ("string", "enum"),
    bytes: ("bytes", "fixed"),
    list: ("array",),
}


def untagged(value: Any) -> Any:
    """The value without its type's name."""
    return value[1] if type(value) is tuple else value


def branch_fields(branches: Sequence[AvroType], shapes: Sequence[Shape]) -> Iterator[Field]:
    """A field for each branch, called as its type."""
    names = [each.name.simple if each.name else each.kind for each in branches]
    if len(set(names)) < len(names):  # from different namespaces
        names = [each.name.full.replace(".", "_") if each.name else each.kind for each in branches]
    for number, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        yield Field(name, partial(_if_of, tuple(branches), number), shape)


def _if_of(branches: tuple[AvroType, ...], number: int, value: Any) -> Any:
    return untagged(value) if _branch(branches, value) == number else None


def _branch(branches: tuple[AvroType, ...], value: Any) -> int:
    if type(value) is tuple:
        named = [each.name is not None and _is_called(each, value[0]) for each in branches]
        if any(named):
            return named.index(True)
        value = value[1]
    if isinstance(value, dict):
        return _of_dictionary(branches, value)
    kinds = [each.kind for each in branches]
    return next(kinds.index(kind) for kind in _PYTHONS[type(value)] if kind in kinds)


def _is_called(type_: AvroType, name: str) -> bool:
    assert type_.name is not None
    return name in {type_.name.full, *(alias.full for alias in type_.aliases)}


def _of_dictionary(branches: tuple[AvroType, ...], value: dict[str, Any]) -> int:
    for number, each in enumerate(branches):
        if each.kind in {"record", "error"} and {field.name for field in each.fields} == value.keys():
            return number
    return next(number for number, each in enumerate(branches) if each.kind == "map")
