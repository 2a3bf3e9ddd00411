"""Avro: a schema, and the named types of the schemas that it refers to."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from headrace.registry.formats.avro_reading import Reader
from headrace.registry.formats.avro_types import AvroType
from headrace.registry.formats.avro_writing import Writer
from headrace.registry.formats.json_text import dump, load
from headrace.registry.formats.schema import InvalidSchema, Reference, Schema, SchemaType


@dataclass(frozen=True)
class AvroSchema:
    """An Avro schema that can be used: every name in it is known."""

    root: AvroType
    references: tuple[Reference, ...]
    referenced: frozenset[str]  # full names that come from elsewhere
    type: SchemaType = SchemaType.AVRO

    @cached_property
    def canonical(self) -> str:
        """As Java writes schemas: keys in its order, no spaces, referenced types as names."""
        return dump(Writer(self.referenced).type(self.root))

    @cached_property
    def normalized(self) -> str:
        return dump(Writer(self.referenced, normalize=True).type(self.root))

    def formatted(self, how: str) -> str:
        """With "resolved" the referenced types are written out, so that the schema stands by itself."""
        return dump(Writer().type(self.root)) if how == "resolved" else self.canonical


def parse(schema: Schema, referenced: Sequence[tuple[str, Schema]]) -> AvroSchema:
    """`referenced` has what the schema refers to, with what that refers to before it."""
    reader, named = Reader(), {}
    for name, other in referenced:
        try:
            _take_in(other.text, reader, named)
        except InvalidSchema as error:
            raise InvalidSchema(f"In the referenced schema {name!r}: {error}") from error
    before = frozenset(reader.names)
    root = _take_in(schema.text, reader, named)
    return AvroSchema(root, schema.references, before)


def _take_in(text: str, reader: Reader, named: dict[str, dict[str, object]]) -> AvroType:
    """Ours is the stricter reading of names and defaults; fastavro knows what its users can work with."""
    node = load(text)
    root = reader.type(node)
    try:
        fastavro.parse_schema(node, named)
    except (SchemaParseException, UnknownType) as error:
        raise InvalidSchema(f"The schema is not usable: {error}.") from error
    return root
