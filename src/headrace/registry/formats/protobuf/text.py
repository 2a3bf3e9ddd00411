"""The .proto text of a descriptor, which protoc compiles to the same descriptor.

Descriptors have no comments. Messages keep their order, including those that maps and groups imply: records
name their message by its index.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from headrace.registry.formats.protobuf import fields
from headrace.registry.formats.protobuf.names import Names
from headrace.registry.formats.protobuf.options import Options, quoted

_MOST_NUMBERS = 1 << 29
_MOST_IN_SETS = (1 << 31) - 1
_VISIBILITY = ("", "local ", "export ")


class Text:
    def __init__(
        self, file: FileDescriptorProto, names: Names, options: Options, *, normalize: bool = False
    ) -> None:
        self._file = file
        self._names = names
        self._options = options
        self._normalize = normalize
        self._fields = fields.Fields(file, names, options, normalize=normalize)

    def __str__(self) -> str:
        scope = self._file.package
        around = DescriptorProto(nested_type=self._file.message_type, extension=self._file.extension)
        syntax = f"syntax = {quoted(self._file.syntax or 'proto2')};"
        if self._file.syntax == "editions":
            syntax = f"edition = {quoted(Edition.Name(self._file.edition).removeprefix('EDITION_'))};"
        paragraphs = [
            [syntax, *([f"package {scope};"] if scope else [])],
            self._imports(),
            list(self._options.statements(self._file.options, scope, "")),
            *self._blocks(around, scope),
            *(self._enum(enum, scope) for enum in self._file.enum_type),
            *(self._service(service, scope) for service in self._file.service),
        ]
        return "\n\n".join("\n".join(paragraph) for paragraph in paragraphs if paragraph) + "\n"

    def _imports(self) -> fields.Lines:
        public, weak = set(self._file.public_dependency), set(self._file.weak_dependency)
        lines = [
            f"import {'public ' if index in public else 'weak ' if index in weak else ''}{quoted(name)};"
            for index, name in enumerate(self._file.dependency)
        ]
        lines += [f"import option {quoted(name)};" for name in self._file.option_dependency]
        return sorted(lines) if self._normalize else lines

    def _body(self, message: DescriptorProto, scope: str) -> Iterator[str]:
        yield from self._options.statements(message.options, scope, "")
        ranges = [(range_.start, range_.end - 1) for range_ in message.reserved_range]
        most, names = _MOST_NUMBERS - 1, message.reserved_name
        yield from fields.reserved(self._file, ranges, names, most, sort=self._normalize)
        for range_ in message.extension_range:
            last = "max" if range_.end in {_MOST_NUMBERS, _MOST_IN_SETS} else range_.end - 1
            numbers = f"{range_.start}" if last == range_.start else f"{range_.start} to {last}"
            yield f"extensions {numbers}{self._options.brackets(range_.options, scope)};"
        for block in self._blocks(message, scope):
            yield from block
        for enum in message.enum_type:
            yield from self._enum(enum, scope)

    def _blocks(self, around: DescriptorProto, scope: str) -> Iterator[fields.Lines]:
        """Yield fields, nested messages and extensions, so that all messages keep their order."""
        implied = self._fields.implied(around)
        order = {nested.name: at for at, nested in enumerate(around.nested_type)}
        grouped = self._fields.groups(around.extension)
        pending = fields.PendingBlocks(around, elsewhere=set(implied.values()), grouped=grouped)
        for members in self._fields.members(around):
            indexes = [order[implied[field.number]] for field in members if field.number in implied]
            yield from self._pending(pending.before(max(indexes, default=0)), around, scope)
            yield self._fields.written(around, members, scope, self._body)
        yield from self._pending(pending.before(len(around.nested_type)), around, scope)
        yield from self._extensions(pending.extensions, around, scope)

    def _pending(
        self, blocks: Iterable[fields.Pending], around: DescriptorProto, scope: str
    ) -> Iterator[fields.Lines]:
        for one in blocks:
            if isinstance(one, list):
                yield from self._extensions(one, around, scope)
            else:
                head = f"{_VISIBILITY[one.visibility]}message {one.name} {{"
                yield [head, *fields.indented(self._body(one, f"{scope}.{one.name}".lstrip("."))), "}"]

    def _enum(self, enum: EnumDescriptorProto, scope: str) -> fields.Lines:
        lines = list(self._options.statements(enum.options, scope, "  "))
        ranges = [(range_.start, range_.end) for range_ in enum.reserved_range]
        lines += fields.indented(
            fields.reserved(self._file, ranges, enum.reserved_name, (1 << 31) - 1, sort=self._normalize)
        )
        lines += [
            f"  {value.name} = {value.number}{self._options.brackets(value.options, scope)};"
            for value in enum.value
        ]
        return [f"{_VISIBILITY[enum.visibility]}enum {enum.name} {{", *lines, "}"]

    def _extensions(
        self, extensions: Iterable[FieldDescriptorProto], around: DescriptorProto, scope: str
    ) -> Iterator[fields.Lines]:
        """Yield extensions in their order; consecutive ones of the same message share a block."""
        for extended, neighbours in groupby(extensions, key=lambda extension: extension.extendee):
            written = [
                self._fields.written(around, [extension], scope, self._body) for extension in neighbours
            ]
            lines = fields.indented(line for lines in written for line in lines)
            yield [f"extend {self._names.within(scope, extended)} {{", *lines, "}"]

    def _service(self, service: ServiceDescriptorProto, scope: str) -> fields.Lines:
        inner = f"{scope}.{service.name}".lstrip(".")
        lines = list(self._options.statements(service.options, inner, "  "))
        for method in service.method:
            taken, given = (
                self._names.within(inner, name) for name in (method.input_type, method.output_type)
            )
            streams = "stream " * method.client_streaming, "stream " * method.server_streaming
            head = f"  rpc {method.name} ({streams[0]}{taken}) returns ({streams[1]}{given})"
            options = list(self._options.statements(method.options, inner, "    "))
            lines += [f"{head} {{", *options, "  }"] if options else [f"{head};"]
        return [f"service {service.name} {{", *lines, "}"]
