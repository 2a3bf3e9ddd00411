"""What the generator knows about a message: its fields and structs, over all its versions."""

from dataclasses import dataclass
from typing import Any, Final

NOT_GIVEN: Final = object()
"""The definition names no default; Kafka's implicit one (zero, empty) applies where one is needed."""


@dataclass(frozen=True)
class Field:
    name: str
    kind: str  # "int32", "[]string", "[]PartitionData"
    versions: tuple[int, ...]
    nullable: tuple[int, ...]
    tag: int | None
    default: Any  # or NOT_GIVEN
    required: bool
    never_flexible: bool  # its length is never a varint

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
class Struct:
    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Message:
    """One message; `structs` holds the nested ones, innermost first."""

    name: str
    key: int | None
    versions: tuple[int, ...]
    flexible: tuple[int, ...]
    latest_version_unstable: bool
    structs: tuple[Struct, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Schema:
    """One file to be written: the messages of one API, or one data schema."""

    module: str
    messages: tuple[Message, ...]

    @property
    def title(self) -> str:
        return self.messages[0].name.removesuffix("Request")
