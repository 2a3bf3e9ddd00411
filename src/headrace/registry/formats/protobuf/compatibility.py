"""Whether one Protobuf schema reads data of another, by the rules of Confluent's registry.

Fields are identified by their numbers. Types with the same encoding can replace one another. A field that has
become required is incompatible whatever its type; Confluent accepts strings and messages.
"""

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor, OneofDescriptor  # type: ignore[import-untyped]

from headrace.registry.formats.differences import Difference, Differences, Pairs, join

STRINGS = "STRING BYTES"
_ENCODINGS = (  # types of one line have the same encoding
    "BOOL ENUM INT32 INT64 UINT32 UINT64",
    "SINT32 SINT64",
    STRINGS,
    "FIXED32 SFIXED32",
    "FIXED64 SFIXED64",
    "FLOAT",
    "DOUBLE",
)
SCALARS = {
    getattr(FieldDescriptor, f"TYPE_{name}"): encoding for encoding in _ENCODINGS for name in encoding.split()
}
"""The encoding of each scalar type."""
_SENTENCES = {
    "PACKAGE_CHANGED": "is in another package than the {writer} schema",
    "MESSAGE_REMOVED": "lacks a message of the {writer} schema",
    "FIELD_KIND_CHANGED": "has a field that is of another kind in the {writer} schema",
    "FIELD_SCALAR_KIND_CHANGED": "has a field whose type has another encoding in the {writer} schema",
    "FIELD_NAMED_TYPE_CHANGED": "has a field of another message than the {writer} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "has a numeric field with another label in the {writer} schema",
    "REQUIRED_FIELD_ADDED": "requires a field that the {writer} schema does not",
    "REQUIRED_FIELD_REMOVED": "lacks a field that the {writer} schema requires",
    "ONEOF_FIELD_REMOVED": "lacks a field of a oneof in the {writer} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "has fields in a oneof that can be set together in the {writer} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "has a field in a oneof that is outside of it in the {writer} schema",
}


def differences(new: FileDescriptor, old: FileDescriptor) -> Differences:
    """Return what keeps the reader `new` from reading all data of the writer `old`."""
    found = _differs("PACKAGE_CHANGED", "#/") if new.package != old.package else []
    return found + _Comparison(new, old).messages(new.message_types_by_name, old.message_types_by_name, "#/")


class _Comparison:
    def __init__(self, new: FileDescriptor, old: FileDescriptor) -> None:
        self._files = new, old
        self._pairs: Pairs[Descriptor] = Pairs(self._message)

    def messages(self, new: Any, old: Any, path: str) -> Differences:
        """Compare all messages of a file, or within a message, by name."""
        found: Differences = []
        for name, before in old.items():
            if before.GetOptions().map_entry:  # compared with its field
                continue
            if name in new:
                found += self._pairs.compare(new[name], before, join(path, name))
            else:
                found += _differs("MESSAGE_REMOVED", join(path, name))
        return found

    def _message(self, new: Descriptor, old: Descriptor, path: str) -> Differences:
        found = _exclusions(new, old, path)
        for number, before in sorted(old.fields_by_number.items()):
            after = new.fields_by_number.get(number)
            here = join(path, number)
            found += _removed(new, before, here) if after is None else self._field(after, before, here)
        for number in sorted(set(new.fields_by_number) - set(old.fields_by_number)):
            if new.fields_by_number[number].is_required:
                found += _differs("REQUIRED_FIELD_ADDED", join(path, number))
        return found + self.messages(new.nested_types_by_name, old.nested_types_by_name, path)

    def _field(self, new: FieldDescriptor, old: FieldDescriptor, path: str) -> Differences:
        if _kind(new) != _kind(old):
            return _differs("FIELD_KIND_CHANGED", path)
        required = _differs("REQUIRED_FIELD_ADDED", path) if new.is_required and not old.is_required else []
        if new.type in SCALARS:
            if SCALARS[new.type] != SCALARS[old.type]:
                return _differs("FIELD_SCALAR_KIND_CHANGED", path)
            same_label = (new.is_repeated, new.is_required) == (old.is_repeated, old.is_required)
            if not same_label and SCALARS[new.type] != STRINGS:
                return _differs("FIELD_NUMERIC_LABEL_CHANGED", path)
            return required
        if _kind(new) == "map":
            entries = new.message_type.fields_by_number, old.message_type.fields_by_number
            return [
                found for part in (1, 2) for found in self._field(entries[0][part], entries[1][part], path)
            ]
        return required + self._named(new.message_type, old.message_type, path)

    def _named(self, new: Descriptor, old: Descriptor, path: str) -> Differences:
        """Compare imported messages here, where they are used. All others are compared in any case."""
        if _local_name(new) != _local_name(old):
            return _differs("FIELD_NAMED_TYPE_CHANGED", path)
        if (new.file, old.file) == self._files:
            return []
        unfit = self._pairs.compare(new, old, join(path, new.name))
        return unfit + _differs("FIELD_NAMED_TYPE_CHANGED", path) if unfit else []


def _kind(field: FieldDescriptor) -> str:
    if field.type in SCALARS:
        return "scalar"
    if field.message_type.GetOptions().map_entry:
        return "map"
    return "group" if field.type == FieldDescriptor.TYPE_GROUP else "message"


def _removed(new: Descriptor, before: FieldDescriptor, path: str) -> Differences:
    """Report a removed field that was required, or whose oneof remains."""
    oneof = _oneof(before)
    if oneof is not None:
        stays = any(member.number in new.fields_by_number for member in oneof.fields)
        kept = any(oneof.name == other.name for other in new.oneofs)
        return _differs("ONEOF_FIELD_REMOVED", path) if stays or kept else []
    return _differs("REQUIRED_FIELD_REMOVED", path) if before.is_required else []


def _exclusions(new: Descriptor, old: Descriptor, path: str) -> Differences:
    """Report fields that could be set together and now exclude each other in a oneof."""
    found: Differences = []
    for oneof in new.oneofs:
        known = [
            old.fields_by_number[field.number]
            for field in oneof.fields
            if field.number in old.fields_by_number
        ]
        alone = [field for field in known if _oneof(field) is None]
        together = {one.name for field in known if (one := _oneof(field)) is not None}
        if len(alone) + len(together) > 1:
            kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(alone) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            found += _differs(kind, join(path, oneof.name))
    return found


def _oneof(field: FieldDescriptor) -> OneofDescriptor | None:
    """Return the oneof that a field shares with others; a proto3 `optional` field has its own."""
    oneof = field.containing_oneof
    alone = oneof is not None and len(oneof.fields) == 1 and oneof.name.endswith(f"_{field.name}")
    return None if alone else oneof


def _local_name(message: Descriptor) -> str:
    return str(message.full_name).removeprefix(f"{message.file.package}.")


def _differs(kind: str, path: str) -> Differences:
    return [Difference(kind, path, f"The {{reader}} schema at path {path!r} {_SENTENCES[kind]}")]
