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
        if how != "resolved":
            return self.canonical
        try:
            return dump(Writer().type(self.root))
        except RecursionError as error:
            raise InvalidSchema(
                "With what it refers to, the schema is nested too deeply to be shown."
            ) from error


def parse(schema: Schema, referenced: Sequence[tuple[str, Schema]]) -> AvroSchema:
    """`referenced` has what the schema refers to, with what that refers to before it."""
    reader, named = Reader(), dict[str, dict[str, object]]()
    for name, other in referenced:
        try:
            _take_in(other.text, reader, named)
        except InvalidSchema as error:
            raise InvalidSchema(f"In the referenced schema {name!r}: {error}") from error
    before = frozenset(reader.names)
    root = _take_in(schema.text, reader, named)
    return AvroSchema(root, schema.references, before)


def _take_in(text: str, reader: Reader, named: dict[str, dict[str, object]]) -> AvroType:
    """Ours is the stricter reading; fastavro knows more of logical types. It need not know every name."""
    before = set(reader.names)
    root = reader.type(load(text))
    try:
        fastavro.parse_schema(Writer(before).type(root), named)
    except UnknownType:
        return root  # one without a namespace, used in one: Java finds it
    except SchemaParseException as error:
        raise InvalidSchema(f"The schema is not usable: {error}.") from error
    return root
