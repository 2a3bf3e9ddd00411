"""What one message reads of another: fields of one number, if they are written in the same way."""

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor  # type: ignore[import-untyped]

_WAYS: Final = (  # those of a line can be read as one another
    "BOOL ENUM INT32 INT64 UINT32 UINT64",
    "SINT32 SINT64",
    "STRING BYTES",
    "FIXED32 SFIXED32",
    "FIXED64 SFIXED64",
    "FLOAT",
    "DOUBLE",
    "MESSAGE",
    "GROUP",
)
_WAY: Final = {getattr(FieldDescriptor, f"TYPE_{name}"): way for way in _WAYS for name in way.split()}
_NAMES: Final[dict[int, str]] = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


def clash(writer: Descriptor, reader: Descriptor) -> str | None:
    """The first field that would be misread, or be lost without a word; None if there is none."""
    waiting: list[tuple[Any, Any]] = [(writer, reader)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        old, new = waiting.pop()
        if (old.full_name, new.full_name) in seen:
            continue
        seen.add((old.full_name, new.full_name))
        for before, after in _common(old, new):
            if _WAY[before.type] != _WAY[after.type] or (_is_packed(before) and not after.is_repeated):
                return (
                    f"field {after.number} of {new.full_name} is {_told(before)} in its schema, "
                    f"and {_told(after)} in that of the columns"
                )
            if before.message_type is not None:
                waiting.append((before.message_type, after.message_type))
    return None


def _common(old: Any, new: Any) -> Iterator[tuple[Any, Any]]:
    for number, before in old.fields_by_number.items():
        if number in new.fields_by_number:
            yield before, new.fields_by_number[number]


def _is_packed(field: Any) -> bool:
    """Whether its values are written together, which one that is not repeated cannot be read from."""
    return bool(field.is_repeated and _WAY[field.type] not in {"STRING BYTES", "MESSAGE", "GROUP"})


def _told(field: Any) -> str:
    return f"{'repeated ' if field.is_repeated else ''}{_NAMES[field.type]}"
