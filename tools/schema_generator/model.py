"""What the generator knows about a message: one version as kio tells it, and all versions merged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

NOT_GIVEN: Final = object()
"""The schema names no default; Kafka's implicit one (zero, empty) applies where one is needed."""


@dataclass(frozen=True)
class FieldFacts:
    """One field in one version."""

    name: str
    kind: str  # "int32", "[]string", "[]PartitionData"
    nullable: bool
    tag: int | None
    default: Any  # or NOT_GIVEN


@dataclass(frozen=True)
class MessageFacts:
    """One message in one version: its structs by name, nested ones before those that hold them."""

    name: str
    flexible: bool
    structs: Mapping[str, tuple[FieldFacts, ...]]


@dataclass(frozen=True)
class MergedField:
    """One field over all versions of its message."""

    name: str
    kind: str
    versions: tuple[int, ...]
    nullable: tuple[int, ...]
    tag: int | None
    default: Any  # or NOT_GIVEN
    required: bool

    @property
    def item_kind(self) -> str:
        return self.kind.removeprefix("[]")

    @property
    def is_array(self) -> bool:
        return self.kind.startswith("[]")

    @property
    def holds_structs(self) -> bool:
        return self.item_kind[0].isupper()


@dataclass(frozen=True)
class MergedStruct:
    name: str
    fields: tuple[MergedField, ...]


@dataclass(frozen=True)
class MergedMessage:
    """One message over all its versions; `structs` holds the nested ones, innermost first."""

    name: str
    key: int | None
    versions: tuple[int, ...]
    flexible: tuple[int, ...]
    structs: tuple[MergedStruct, ...]
    fields: tuple[MergedField, ...]


@dataclass(frozen=True)
class Schema:
    """One file to be written: the messages of one API, or one data schema."""

    module: str
    messages: tuple[MergedMessage, ...]

    @property
    def title(self) -> str:
        return self.messages[0].name.removesuffix("Request")
