"""Protobuf schemas: a .proto file, and the files that it imports."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet  # type: ignore[import-untyped]
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from headrace.registry.formats.differences import Differences
from headrace.registry.formats.protobuf import compatibility as protobuf_compatibility
from headrace.registry.formats.protobuf import protoc
from headrace.registry.formats.protobuf.known import known_imports
from headrace.registry.formats.protobuf.names import Names
from headrace.registry.formats.protobuf.options import Options, quoted
from headrace.registry.formats.protobuf.text import Text
from headrace.registry.formats.schema import InvalidSchema, Reference, Schema, SchemaType

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True, eq=False)
class ProtobufSchema:
    """A valid Protobuf schema. `files` has the imported files first, and the schema itself last."""

    files: tuple[FileDescriptorProto, ...]
    references: tuple[Reference, ...]
    type: SchemaType = SchemaType.PROTOBUF

    @property
    def file(self) -> FileDescriptorProto:
        return self.files[-1]

    @cached_property
    def pool(self) -> DescriptorPool:
        return _pool(self.files)

    @cached_property
    def canonical(self) -> str:
        """The .proto text, also of a schema that was submitted as a descriptor."""
        return self._text()

    @cached_property
    def normalized(self) -> str:
        return self._text(normalize=True)

    def formatted(self, how: str) -> str:
        """Return the text, without custom options for "ignore_extensions"; a descriptor for "serialized"."""
        match how:
            case "serialized":
                return base64.standard_b64encode(self.file.SerializeToString()).decode()
            case "ignore_extensions":
                return self._text(extensions=False)
        return self.canonical

    def differences(self, writer: "ProtobufSchema") -> Differences:
        new, old = (each.pool.FindFileByName(each.file.name) for each in (self, writer))
        return protobuf_compatibility.differences(new, old)

    def _text(self, *, normalize: bool = False, extensions: bool = True) -> str:
        names = Names(self.files)
        options = Options(self.pool, names, extensions=extensions)
        return str(Text(self.file, names, options, normalize=normalize))


def parse(schema: Schema, referenced: Sequence[tuple[str, Schema]]) -> ProtobufSchema:
    """Return the schema parsed; each of `referenced` comes after the schemas that it refers to."""
    imports: dict[str, str] = {}
    for name, other in referenced:
        imports[name] = _as_text(other.text, imports)
    files = _compiled(_as_text(schema.text, imports), imports)
    file = files[-1]
    if not (file.message_type or file.enum_type or file.extension or file.service or file.dependency):
        raise InvalidSchema("The schema is empty.")
    parsed = ProtobufSchema(files, schema.references)
    try:
        _ = parsed.pool  # the runtime may refuse what the compiler has accepted
    except TypeError as error:
        raise InvalidSchema(f"The schema compiles, but Protobuf cannot load it: {error}.") from error
    return parsed


def _compiled(text: str, imports: Mapping[str, str]) -> tuple[FileDescriptorProto, ...]:
    main = _free_name(imports)
    known = {name: known for each in (text, *imports.values()) for name, known in known_imports(each).items()}
    names = {**known, **imports}
    compiled = protoc.compiled(((main, text), *names.items()))
    return tuple(FileDescriptorSet.FromString(compiled).file)


def _as_text(text: str, imports: Mapping[str, str]) -> str:
    """Return the .proto text of a schema, which some clients submit as a descriptor in base64."""
    stripped = text.strip()
    if not _BASE64.fullmatch(stripped):
        return text
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(stripped, validate=True))
    except (binascii.Error, DecodeError) as error:
        raise InvalidSchema("The schema is neither .proto text nor a file descriptor in base64.") from error
    file.name = _free_name(imports)
    around = "".join(f"import {quoted(name)};" for name in (*file.dependency, *file.option_dependency))
    files = (*_compiled(f'syntax = "proto3"; {around}', imports)[:-1], file)
    try:
        names = Names(files)
        return str(Text(file, names, Options(_pool(files), names)))
    except (KeyError, IndexError, ValueError, TypeError, DecodeError) as error:
        raise InvalidSchema(f"The file descriptor contradicts itself: {error}.") from error


def _pool(files: Sequence[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool


def _free_name(imports: Mapping[str, str]) -> str:
    """Return a name for the schema itself that no import has."""
    name = "schema.proto"
    while name in imports:
        name = f"_{name}"
    return name
