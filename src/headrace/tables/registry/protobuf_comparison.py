"""Whether Protobuf messages have the values that were written if they are parsed with the reader's schema.

Types with the same encoding can replace one another. A parser then truncates an int64 that becomes an int32,
reads a negative int32 as a uint32, and keeps the last value of a field that is no longer repeated.
"""

from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor  # type: ignore[import-untyped]

from headrace.registry.formats.protobuf.compatibility import SCALARS

_TYPE_NAMES: Final[dict[int, str]] = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}
_WIDER: Final = {
    (getattr(FieldDescriptor, f"TYPE_{old}"), getattr(FieldDescriptor, f"TYPE_{new}"))
    for old, wider in {
        "BOOL": "INT32 INT64 UINT32 UINT64",
        "ENUM": "INT32 INT64",
        "INT32": "INT64",
        "UINT32": "INT64 UINT64",
        "SINT32": "SINT64",
        "STRING": "BYTES",
    }.items()
    for new in wider.split()
}
"""The types of the writer and the reader between which no value changes."""


def conflict(writer: Descriptor, reader: Descriptor) -> str | None:
    """Return the first field whose values may change between the schemas; None if there is none."""
    waiting: list[tuple[Any, Any]] = [(writer, reader)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        old, new = waiting.pop()
        if (old.full_name, new.full_name) in seen:
            continue
        seen.add((old.full_name, new.full_name))
        for number, before in old.fields_by_number.items():
            after = new.fields_by_number.get(number)
            if after is None:
                continue
            if _may_change(before, after) or _is_moved(before, after):
                return (
                    f"field {number} of {new.full_name} is {_type_name(before)} in its schema, "
                    f"and {_type_name(after)} in that of the columns"
                )
            if before.message_type is not None:
                waiting.append((before.message_type, after.message_type))
    return None


def _may_change(before: Any, after: Any) -> bool:
    """Return whether a value of the writer's field may be another one in the reader's."""
    if SCALARS.get(before.type, before.type) != SCALARS.get(after.type, after.type):
        return True
    if (before.is_repeated and not after.is_repeated) or _is_map(before) != _is_map(after):
        return True
    if before.type != after.type:
        return (before.type, after.type) not in _WIDER
    old, new = before.enum_type, after.enum_type
    if old is None or not new.is_closed:  # an open enum has all numbers
        return False
    # A parser drops values that a closed enum does not have.
    return not old.is_closed or not old.values_by_number.keys() <= new.values_by_number.keys()


def _is_moved(before: Any, after: Any) -> bool:
    """Return whether the field is in a oneof with others that the writer could set as well."""
    if after.containing_oneof is None:
        return False
    others = {field.number for field in after.containing_oneof.fields}
    together = before.containing_oneof.fields if before.containing_oneof else [before]
    written = {number for number in before.containing_type.fields_by_number if number in others}
    return not written <= {each.number for each in together}


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _type_name(field: Any) -> str:
    return f"{'repeated ' if field.is_repeated else ''}{_TYPE_NAMES[field.type]}"
