"""How one record's bytes become a value, by the format of its schema."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from headrace.pipeline.registry.shapes import Shape
from headrace.pipeline.registry.whole import Whole
from headrace.registry.formats import InvalidSchema, Parsed

Kind = TypeVar("Kind", bound=Parsed)


class Unreadable(Exception):
    """A record, or all records of a schema, cannot be decoded; the words are what a dead letter says."""


class Reading(Protocol):
    """A reader's schema: the columns, and what reads values that were written with other schemas."""

    @property
    def shape(self) -> Shape: ...

    def of(self, writer: Whole) -> Callable[[bytes], Any]:
        """A function of what follows a record's schema id. It raises Unreadable, and so does this."""
        ...


def understood(writer: Whole, kind: type[Kind], reader: Kind) -> Kind:
    """The writer's schema, which has to be of the reader's format."""
    try:
        found = writer.parsed()
    except InvalidSchema as error:
        raise Unreadable(f"its schema cannot be understood: {error}") from error
    if not isinstance(found, kind):
        raise Unreadable(f"its schema is {found.type}, and the columns are those of one of {reader.type}")
    return found
