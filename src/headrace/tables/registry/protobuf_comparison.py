"""Whether a Protobuf message that is parsed with the reader's schema has the values that were written.

Types with the same encoding can replace one another. A parser then truncates an int64 that becomes an int32,
reads a negative int32 as a uint32, and keeps the last value of a field that is no longer repeated. The fields
in which that can happen are known from the two schemas; they are compared in both readings of a message.
"""

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor  # type: ignore[import-untyped]

from headrace.registry.formats.protobuf.compatibility import SCALARS, STRINGS
from headrace.tables.registry.reader import Unreadable

Check: TypeAlias = Callable[[Any, Any], None]
"""Raises Unreadable if a message of the writer's class differs from the same one of the reader's."""

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
    """Return the first field that the reader cannot parse, whatever its value; None if there is none."""
    waiting: list[tuple[Any, Any]] = [(writer, reader)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        old, new = waiting.pop()
        if (old.full_name, new.full_name) in seen:
            continue
        seen.add((old.full_name, new.full_name))
        for before, after in _common(old, new):
            packed = before.is_repeated and SCALARS.get(before.type, STRINGS) != STRINGS
            if (
                SCALARS.get(before.type, before.type) != SCALARS.get(after.type, after.type)
                or (packed and not after.is_repeated)  # a single field does not read values that are packed
                or _is_map(before) != _is_map(after)
            ):
                return (
                    f"field {after.number} of {new.full_name} is {_type_name(before)} in its schema, "
                    f"and {_type_name(after)} in that of the columns"
                )
            if before.message_type is not None:
                waiting.append((before.message_type, after.message_type))
    return None


class Comparison:
    """The checks of messages of one writer."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Check | None] = {}

    def check(self, writer: Descriptor, reader: Descriptor) -> Check | None:
        """Return the check of a message; None if no value of it can change."""
        pair = writer.full_name, reader.full_name
        if pair not in self._known:

            def later(old: Any, new: Any) -> None:  # for a message within itself
                check = self._known[pair]
                if check is not None:
                    check(old, new)

            self._known[pair] = later
            fields = [
                (before, after, self._field(before, after)) for before, after in _common(writer, reader)
            ]
            checked = [(before, after, check) for before, after, check in fields if check is not None]

            def check_fields(old: Any, new: Any) -> None:
                for before, after, check in checked:
                    check(_values(old, before), _values(new, after))

            self._known[pair] = check_fields if checked else None
        return self._known[pair]

    def _field(self, before: Any, after: Any) -> Check | None:
        """Return the check of a field's values, which are in a list, also if there is at most one."""
        if _is_map(before):
            parts = [
                self._field(before.message_type.fields_by_name[name], after.message_type.fields_by_name[name])
                for name in ("key", "value")
            ]
            return _map_check(after, parts[1]) if any(parts) else None
        within = None if before.message_type is None else self.check(before.message_type, after.message_type)
        fewer = before.is_repeated and not after.is_repeated
        if within is None and not fewer and not _may_change(before, after) and not _is_moved(before, after):
            return None

        is_implicit = not after.has_presence and not after.is_repeated

        def check(old: Any, new: Any) -> None:
            if is_implicit and len(old) == 1 and not old[0]:  # the default value of `after`
                old = []
            if len(old) > 1 and len(old) != len(new):
                raise Unreadable(
                    f"{_named(after)} has {len(old)} values in the record, and {len(new)} in the columns "
                    f"({_type_name(before)} in its schema, {_type_name(after)} in that of the columns)"
                )
            for one, other in zip_longest(old, new):
                if within is not None and other is not None:
                    within(one, other)
                elif _bytes(one) != _bytes(other) and (before.message_type is None or other is None):
                    raise Unreadable(
                        f"{_named(after)} is {one!r:.60} ({_type_name(before)} in its schema), "
                        f"which does not fit {_type_name(after)} in that of the columns"
                    )

        return check


def _map_check(after: Any, of_values: Check | None) -> Check:
    def check(old: Any, new: Any) -> None:
        if set(old) != set(new):
            raise Unreadable(f"{_named(after)} has other keys in the columns, whose type differs")
        if of_values is not None:
            for key in old:
                of_values([old[key]], [new[key]])

    return check


def _values(message: Any, field: Any) -> Any:
    """Return the values of a field as a list, or a map. A field that is not in the message has none."""
    value = getattr(message, field.name)
    if field.is_repeated:
        return value
    return [value] if (message.HasField(field.name) if field.has_presence else value) else []


def _may_change(before: Any, after: Any) -> bool:
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
    others = {each.number for each in after.containing_oneof.fields}
    together = before.containing_oneof.fields if before.containing_oneof else [before]
    written = {number for number in before.containing_type.fields_by_number if number in others}
    return not written <= {each.number for each in together}


def _common(old: Any, new: Any) -> list[tuple[Any, Any]]:
    return [
        (before, new.fields_by_number[number])
        for number, before in old.fields_by_number.items()
        if number in new.fields_by_number
    ]


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _named(field: Any) -> str:
    return f"field {field.number}, {field.name}, of {field.containing_type.full_name}"


def _type_name(field: Any) -> str:
    return f"{'repeated ' if field.is_repeated else ''}{_TYPE_NAMES[field.type]}"
