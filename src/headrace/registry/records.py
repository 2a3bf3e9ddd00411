"""The records of `_schemas`, which hold the whole state of a registry (`record_json` encodes them)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from headrace.registry.formats import Level, Schema

Answer = TypeVar("Answer")


class Mode(StrEnum):
    """Which requests a subject accepts."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"


@dataclass(frozen=True, slots=True)
class SchemaKey:
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ConfigKey:
    subject: str | None


@dataclass(frozen=True, slots=True)
class ModeKey:
    subject: str | None


@dataclass(frozen=True, slots=True)
class DeleteSubjectKey:
    subject: str


@dataclass(frozen=True, slots=True)
class ClearSubjectKey:
    """Permanently deletes the soft-deleted versions of a subject or context; None: of all subjects."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextKey:
    context: str


@dataclass(frozen=True, slots=True)
class NoopKey:
    """Changes nothing: other registries write it to find the end of the log."""


@dataclass(frozen=True, slots=True)
class MaxIdKey:
    """The highest id that a context has assigned. Other registries read this record as a NOOP."""

    context: str


RecordKey = (
    SchemaKey | MaxIdKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey
)


@dataclass(frozen=True, slots=True)
class SchemaValue:
    """A version of a subject. `metadata` and `rule_set` are stored for clients and not interpreted."""

    subject: str
    version: int
    id: int
    schema: Schema
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    deleted: bool = False

    def metadata_property(self, name: str) -> object:
        """Return a property of the metadata, which may be any JSON value."""
        properties = (self.metadata or {}).get("properties")
        return properties.get(name) if isinstance(properties, Mapping) else None


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """Settings of a subject; None is for those that are not set. `others` are stored and not interpreted."""

    compatibility: Level | None = None
    normalize: bool | None = None
    alias: str | None = None
    group: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModeValue:
    mode: Mode


@dataclass(frozen=True, slots=True)
class DeleteSubjectValue:
    """All versions up to this one are soft-deleted."""

    version: int


@dataclass(frozen=True, slots=True)
class MaxIdValue:
    id: int


@dataclass(frozen=True, slots=True)
class Exists:
    """The value of a key that needs no other."""


RecordValue = SchemaValue | ConfigValue | ModeValue | DeleteSubjectValue | MaxIdValue | Exists


@dataclass(frozen=True, slots=True)
class Record:
    """A key and its value, or None for a tombstone."""

    key: RecordKey
    value: RecordValue | None


@dataclass(frozen=True, slots=True)
class Decision(Generic[Answer]):
    """Records to append, all or none, and the answer to the client once they are. There may be no records."""

    answer: Answer
    records: Sequence[Record] = ()
