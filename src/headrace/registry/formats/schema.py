"""A schema as it was submitted, and what a parsed schema offers."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from headrace.registry.formats.differences import Differences


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to another schema: `name` in the text is this version of this subject."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """A schema as it was submitted, unchecked."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()


class InvalidSchema(Exception):
    """The schema is not valid. The message is a sentence for its author."""


Resolve = Callable[[Reference], Schema]


class Parsed(Protocol):
    """A valid schema. A lookup finds it by `canonical` and `references`."""

    @property
    def type(self) -> SchemaType: ...

    @property
    def references(self) -> tuple[Reference, ...]: ...

    @property
    def canonical(self) -> str:
        """The text that is stored and returned to clients."""
        ...

    @property
    def normalized(self) -> str:
        """The text without differences that have no meaning: stored with `?normalize=true`."""
        ...

    def formatted(self, how: str) -> str:
        """Return the text in the form of `?format=`; `canonical` for "" and for unknown forms."""
        ...

    def differences(self, writer: Any) -> Differences:
        """Return what keeps this schema from reading all data of `writer`, a schema of the same format."""
        ...
