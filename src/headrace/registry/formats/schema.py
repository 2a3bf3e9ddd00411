"""A schema as somebody gave it, and as it is once it has been understood."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SchemaType(StrEnum):
    """The formats there are, by the registry's names."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """What one schema calls another: `name` in its text is that version of that subject."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """A schema as somebody gave it: nothing about it has been checked."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()


class InvalidSchema(Exception):
    """A schema that cannot be one. The message is a sentence for whoever wrote it."""


Resolve = Callable[[Reference], Schema]


class Parsed(Protocol):
    """A schema that is one. Two are the same to a lookup if `canonical` and `references` are equal."""

    @property
    def type(self) -> SchemaType: ...

    @property
    def references(self) -> tuple[Reference, ...]: ...

    @property
    def canonical(self) -> str:
        """The text that is kept, and given to whoever asks."""
        ...

    @property
    def normalized(self) -> str:
        """The text without differences that mean nothing: what `?normalize=true` keeps."""
        ...

    def formatted(self, how: str) -> str:
        """The text as `?format=` wants it; `canonical` for "" and for what this format does not know."""
        ...
