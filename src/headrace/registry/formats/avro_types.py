"""Avro's types, as a graph: a name that is used again is the same object again."""

from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})


@dataclass(frozen=True, slots=True)
class Name:
    """A name and the namespace it lives in, which may be none."""

    simple: str
    namespace: str = ""

    @property
    def full(self) -> str:
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple


NOTHING = object()  # "no default", which is something else than a default of null


@dataclass(eq=False, slots=True)
class Field:
    """A field of a record."""

    name: str
    type: "AvroType"
    doc: str | None = None
    default: Any = NOTHING
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class AvroType:
    """Any type. What only some kinds have is empty in the others; `props` means nothing to Avro."""

    kind: str
    props: dict[str, Any] = field(default_factory=dict)
    name: Name | None = None
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    fields: tuple[Field, ...] = ()  # of a record
    symbols: tuple[str, ...] = ()  # of an enum
    default: str | None = None  # of an enum
    size: int = 0  # of a fixed
    branches: tuple["AvroType", ...] = ()  # of a union; what an array or a map holds is its only one

    @property
    def inner(self) -> "AvroType":
        """What an array's items or a map's values are."""
        return self.branches[0]
