"""Properties of a message class: its minimal size, and whether it contains records."""

from headrace.protocol.compiled.source import FIXED
from headrace.protocol.compiled.structs import StructType, struct_named
from headrace.protocol.fields import Field


def minimal_size(cls: StructType, version: int, flexible: bool) -> int:
    """Return the minimal encoded size of an instance, at least 1.

    A frame of S bytes holds at most S // minimal_size instances, whatever its count says.
    """
    return max(1, _least_of_struct(cls, version, flexible))


def _least_of_struct(cls: StructType, version: int, flexible: bool) -> int:
    fields = (field for field in cls.__fields__ if field.exists_in(version) and field.tag is None)
    return flexible + sum(_least(field, cls, version, flexible) for field in fields)


def _least(field: Field, cls: StructType, version: int, flexible: bool) -> int:
    if field.kind in FIXED:
        return FIXED[field.kind][1]
    if field.holds_structs and not field.is_array:
        nullable = field.nullable_in(version)
        return 1 if nullable else _least_of_struct(struct_named(field.kind, cls), version, flexible)
    if field.flexible_in(version, flexible):
        return 1
    return 2 if field.kind == "string" else 4


def holds_records(cls: StructType, version: int) -> bool:
    fields = [field for field in cls.__fields__ if field.exists_in(version)]
    return any(field.kind == "records" for field in fields) or any(
        holds_records(struct_named(field.item_kind, cls), version) for field in fields if field.holds_structs
    )
