"""Avro types as a graph: all uses of a name are the same object."""

from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a namespace, which may be empty."""

    simple: str
    namespace: str = ""

    @property
    def full(self) -> str:
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple


NO_DEFAULT = object()  # differs from a default of null


@dataclass(eq=False, slots=True)
class Field:
    name: str
    type: "AvroType"
    doc: str | None = None
    default: Any = NO_DEFAULT
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class AvroType:
    """Any type. Attributes that a kind does not have are empty; `props` are not defined by Avro."""

    kind: str
    props: dict[str, Any] = field(default_factory=dict)
    name: Name | None = None
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    fields: tuple[Field, ...] = ()  # of a record
    symbols: tuple[str, ...] = ()  # of an enum
    default: str | None = None  # of an enum
    size: int = 0  # of a fixed
    branches: tuple["AvroType", ...] = ()  # of a union; the items of an array or the values of a map

    @property
    def inner(self) -> "AvroType":
        """The type of an array's items or of a map's values."""
        return self.branches[0]
