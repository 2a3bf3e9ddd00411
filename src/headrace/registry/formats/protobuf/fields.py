"""Fields in .proto files, with labels, maps, groups, oneofs and defaults."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _Field

from headrace.registry.formats.protobuf.names import Names
from headrace.registry.formats.protobuf.options import Options, quoted

Lines = list[str]
Body = Callable[[DescriptorProto, str], Iterable[str]]  # writes the body of a group


class Fields:
    """Writes the fields of the messages of one file."""

    def __init__(self, file: FileDescriptorProto, names: Names, options: Options, *, normalize: bool) -> None:
        self._file = file
        self._names = names
        self._options = options
        self._normalize = normalize

    def members(self, message: DescriptorProto) -> list[list[_Field]]:
        """Return the fields in their order, with the fields of a oneof together at its first one.

        Normalized fields are ordered by number, unless that would change the order of nested messages.
        """
        sort = self._normalize and not self.implied(message)
        fields = sorted(message.field, key=lambda field: field.number) if sort else message.field
        members: dict[object, list[_Field]] = {}
        for field in fields:
            alone = not field.HasField("oneof_index") or field.proto3_optional
            members.setdefault(("field", field.number) if alone else ("oneof", field.oneof_index), []).append(
                field
            )
        return list(members.values())

    def implied(self, message: DescriptorProto) -> dict[int, str]:
        """Return the nested messages that maps and groups imply, by the numbers of their fields."""
        entries = {nested.name for nested in message.nested_type if nested.options.map_entry}
        return {
            field.number: name
            for field in message.field
            if (name := field.type_name.rpartition(".")[2]) in entries or field.type == _Field.TYPE_GROUP
        }

    def groups(self, extensions: Iterable[_Field]) -> set[str]:
        """Return the messages that the groups among extensions imply."""
        return {field.type_name.rpartition(".")[2] for field in extensions if field.type == _Field.TYPE_GROUP}

    def written(self, message: DescriptorProto, members: Sequence[_Field], scope: str, body: Body) -> Lines:
        """Return the lines of a field, or of a oneof with its fields."""
        first = members[0]
        if not first.HasField("oneof_index") or first.proto3_optional:
            if first.label == _Field.LABEL_REPEATED:
                label = "repeated "
            elif self._file.syntax in {"", "proto2"}:
                label = "required " if first.label == _Field.LABEL_REQUIRED else "optional "
            else:
                label = "optional " if first.proto3_optional else ""
            return self._field(message, first, scope, body, label)
        oneof = message.oneof_decl[first.oneof_index]
        lines = list(self._options.statements(oneof.options, scope, ""))
        for field in members:
            lines += self._field(message, field, scope, body, "")
        return [f"oneof {oneof.name} {{", *indented(lines), "}"]

    def _field(self, message: DescriptorProto, field: _Field, scope: str, body: Body, label: str) -> Lines:
        options = self._options.brackets(field.options, scope, *_special(field))
        nested = {nested.name: nested for nested in message.nested_type}.get(
            field.type_name.rpartition(".")[2]
        )
        if field.type == _Field.TYPE_GROUP and nested is not None:
            inner = indented(body(nested, f"{scope}.{nested.name}".lstrip(".")))
            return [f"{label}group {nested.name} = {field.number}{options} {{", *inner, "}"]
        if nested is not None and nested.options.map_entry:
            key, value = (self._type(part, scope) for part in nested.field)
            return [f"map<{key}, {value}> {field.name} = {field.number}{options};"]
        return [f"{label}{self._type(field, scope)} {field.name} = {field.number}{options};"]

    def _type(self, field: _Field, scope: str) -> str:
        if field.type_name:
            return self._names.within(scope, field.type_name)
        return str(_Field.Type.Name(field.type)).removeprefix("TYPE_").lower()


Pending: TypeAlias = DescriptorProto | list[_Field]


class PendingBlocks:
    """The nested messages and extensions that are still to be written, each in their order.

    The message of a group among the extensions is written with its extension.
    """

    def __init__(self, around: DescriptorProto, *, elsewhere: set[str], grouped: set[str]) -> None:
        self._messages = [(at, one) for at, one in enumerate(around.nested_type) if one.name not in elsewhere]
        self._grouped = grouped
        self.extensions = list(around.extension)

    def before(self, index: int) -> Iterator[Pending]:
        """Yield everything that precedes the nested message of this index."""
        while self._messages and self._messages[0][0] < index:
            _, message = self._messages.pop(0)
            names = [extension.type_name.rpartition(".")[2] for extension in self.extensions]
            if message.name not in self._grouped:
                yield message
            elif message.name in names:
                count = names.index(message.name) + 1
                yield self.extensions[:count]
                del self.extensions[:count]


def _special(field: _Field) -> Iterator[str]:
    """Yield the default and the JSON name, which are written among the options."""
    if field.HasField("default_value"):
        default = field.default_value
        if field.type == _Field.TYPE_BYTES:  # which the descriptor has escaped already
            default = f'"{default}"'
        yield f"default = {quoted(default) if field.type == _Field.TYPE_STRING else default}"
    first, *others = field.name.split("_")
    default_name = first + "".join(part[:1].upper() + part[1:] for part in others)  # some_name: someName
    if field.json_name and field.json_name != default_name and not field.extendee:
        yield f"json_name = {quoted(field.json_name)}"


def reserved(
    file: FileDescriptorProto, ranges: list[tuple[int, int]], names: Sequence[str], most: int, *, sort: bool
) -> Iterator[str]:
    """Yield the `reserved` statements of numbers and names; ranges include their last number."""
    numbers = [
        f"{first}" if first == last else f"{first} to {'max' if last == most else last}"
        for first, last in (sorted(ranges) if sort else ranges)
    ]
    if numbers:
        yield f"reserved {', '.join(numbers)};"
    if names:
        listed = sorted(names) if sort else names
        yield f"reserved {', '.join(name if file.syntax == 'editions' else quoted(name) for name in listed)};"


def indented(lines: Iterable[str]) -> Lines:
    return [f"  {line}" for line in lines]
