"""What the readers of all formats share: schemas with their references, and errors of records."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from headrace.registry.formats import InvalidSchema, Parsed, Reference, Schema, parse
from headrace.tables.registry.shapes import Shape

Kind = TypeVar("Kind", bound=Parsed)


@dataclass(frozen=True, slots=True)
class ResolvedSchema:
    """A schema with all schemas that it refers to, so that executors can parse it without the registry."""

    schema: Schema
    referenced: tuple[tuple[Reference, Schema], ...] = ()

    def parsed(self) -> Parsed:
        """Return the schema parsed; InvalidSchema if it is not valid."""
        known = dict(self.referenced)

        def resolve(reference: Reference) -> Schema:
            if reference not in known:
                raise InvalidSchema(f"the reference {reference.name} is missing")
            return known[reference]

        return parse(self.schema, resolve)

    @property
    def documents(self) -> dict[str, str]:
        return {reference.name: schema.text for reference, schema in self.referenced}


class Unreadable(Exception):
    """A record, or every record of a schema, cannot be decoded; dead letters carry the message."""


class Reader(Protocol):
    """A reader's schema: the shape of the columns, and the decoding of records of other schemas."""

    @property
    def shape(self) -> Shape: ...

    def decoder_for(self, writer: ResolvedSchema) -> Callable[[bytes], Any]:
        """Return a function that decodes what follows a record's schema id. Both may raise Unreadable."""
        ...


def parse_writer(writer: ResolvedSchema, kind: type[Kind], reader: Kind) -> Kind:
    """Return the writer's schema parsed; Unreadable if it is not valid or not of the reader's format."""
    try:
        found = writer.parsed()
    except InvalidSchema as error:
        raise Unreadable(f"its schema cannot be parsed: {error}") from error
    if not isinstance(found, kind):
        raise Unreadable(f"its schema is {found.type}, and the schema of the columns is {reader.type}")
    return found
