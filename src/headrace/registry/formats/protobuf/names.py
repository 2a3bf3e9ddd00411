"""Names in .proto files: the shortest one that resolves to the right type."""

from collections.abc import Iterable, Iterator

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto  # type: ignore[import-untyped]

# A type of such a name is taken for the keyword at the beginning of a statement.
_KEYWORDS = (
    "bool bytes double edition enum export extend extensions fixed32 fixed64 float group import int32 "
    "int64 local map message oneof option optional package public repeated required reserved returns "
    "rpc service sfixed32 sfixed64 sint32 sint64 stream string syntax to uint32 uint64 weak"
)
_WORDS = frozenset(_KEYWORDS.split())


class Names:
    def __init__(self, files: Iterable[FileDescriptorProto]) -> None:
        self._taken = {name for file in files for name in _in_file(file)}

    def within(self, scope: str, full: str) -> str:
        """Return the shortest name that resolves to `full` (a type's name, with a leading dot) in a scope.

        protoc looks for the first part of a name from the innermost scope outwards and takes the first match.
        So a short name resolves correctly unless an inner scope has a name with the same first part.
        """
        full = full.removeprefix(".")
        parts = full.split(".")
        for start in range(len(parts) - 1, -1, -1):
            if parts[start] not in _WORDS and self._found(scope, ".".join(parts[start:])) == full:
                return ".".join(parts[start:])
        return f".{full}"

    def _found(self, scope: str, name: str) -> str | None:
        first = name.partition(".")[0]
        while True:
            prefix = f"{scope}." if scope else ""
            if f"{prefix}{first}" in self._taken:
                return f"{prefix}{name}"
            if not scope:
                return None
            scope = scope.rpartition(".")[0]


def _in_file(file: FileDescriptorProto) -> Iterator[str]:
    package = file.package.split(".") if file.package else []
    yield from (".".join(package[:count]) for count in range(1, len(package) + 1))
    prefix = f"{file.package}." if file.package else ""
    for message in file.message_type:
        yield from _in_message(message, prefix)
    for enum in file.enum_type:
        yield from _in_enum(enum, prefix)
    yield from (f"{prefix}{extension.name}" for extension in file.extension)
    yield from (f"{prefix}{service.name}" for service in file.service)


def _in_message(message: DescriptorProto, prefix: str) -> Iterator[str]:
    yield f"{prefix}{message.name}"
    prefix = f"{prefix}{message.name}."
    for nested in message.nested_type:
        yield from _in_message(nested, prefix)
    for enum in message.enum_type:
        yield from _in_enum(enum, prefix)
    for named in (*message.field, *message.extension, *message.oneof_decl):
        yield f"{prefix}{named.name}"


def _in_enum(enum: EnumDescriptorProto, prefix: str) -> Iterator[str]:
    """Yield an enum and its values, which are in the scope around the enum, as in C."""
    yield f"{prefix}{enum.name}"
    yield from (f"{prefix}{value.name}" for value in enum.value)
