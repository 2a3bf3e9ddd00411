"""Avro schemas, with the named types of the schemas that they refer to."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from headrace.registry.formats.avro import compatibility as avro_compatibility
from headrace.registry.formats.avro.parser import Parser
from headrace.registry.formats.avro.types import AvroType
from headrace.registry.formats.avro.writer import Writer
from headrace.registry.formats.differences import Differences
from headrace.registry.formats.json.text import dump, load
from headrace.registry.formats.schema import InvalidSchema, Reference, Schema, SchemaType


@dataclass(frozen=True)
class AvroSchema:
    root: AvroType
    references: tuple[Reference, ...]
    referenced: frozenset[str]  # full names of types that other schemas define
    type: SchemaType = SchemaType.AVRO

    @cached_property
    def canonical(self) -> str:
        """The schema as Java's library writes it: its order of keys, no spaces, referenced types by name."""
        return dump(Writer(self.referenced).type(self.root))

    @cached_property
    def normalized(self) -> str:
        return dump(Writer(self.referenced, normalize=True).type(self.root))

    def formatted(self, how: str) -> str:
        """Return the schema; with "resolved", referenced types are written out."""
        if how != "resolved":
            return self.canonical
        try:
            return dump(Writer().type(self.root))
        except RecursionError as error:
            raise InvalidSchema(
                "The schema with its references is nested too deeply to be written."
            ) from error

    def differences(self, writer: "AvroSchema") -> Differences:
        return avro_compatibility.differences(self.root, writer.root)


def parse(schema: Schema, referenced: Sequence[tuple[str, Schema]]) -> AvroSchema:
    """Return the schema parsed; each of `referenced` comes after the schemas that it refers to."""
    parser, named = Parser(), dict[str, dict[str, object]]()
    for name, other in referenced:
        try:
            _parse_text(other.text, parser, named)
        except InvalidSchema as error:
            raise InvalidSchema(f"In the referenced schema {name!r}: {error}") from error
    before = frozenset(parser.names)
    return AvroSchema(_parse_text(schema.text, parser, named), schema.references, before)


def _parse_text(text: str, parser: Parser, named: dict[str, dict[str, object]]) -> AvroType:
    """Parse with our parser, which is stricter, and then with fastavro, which checks logical types."""
    before = set(parser.names)
    root = parser.type(load(text))
    try:
        fastavro.parse_schema(Writer(before).type(root), named)
    except UnknownType:
        # A type without a namespace is used within one: Java's library finds it, fastavro does not.
        return root
    except SchemaParseException as error:
        raise InvalidSchema(f"The schema is not usable: {error}.") from error
    return root
