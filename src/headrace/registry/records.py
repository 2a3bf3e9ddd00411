"""The records of `_schemas`: all that a registry remembers (`record_json` has how they are written)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headrace.registry.formats import Level, Schema


class Mode(StrEnum):
    """What may be done to a subject."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"


# -- keys ------------------------------------------------------------------------------------------


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
    """What was deleted of a subject, or of a context, is to be forgotten; None: of everything."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextKey:
    context: str


@dataclass(frozen=True, slots=True)
class NoopKey:
    """Changes nothing: other registries write it to find the log's end."""


@dataclass(frozen=True, slots=True)
class MaxIdKey:
    """Ours, and a NOOP to other registries: ids of a context up to this one have been given out."""

    context: str


Key = SchemaKey | MaxIdKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey

# -- values ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SchemaValue:
    """A version of a subject. `metadata` and `rule_set` are kept for clients, which alone understand them."""

    subject: str
    version: int
    id: int
    schema: Schema
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    deleted: bool = False

    def metadata_property(self, name: str) -> object:
        """What the metadata's properties say under this name; what is written there may be anything."""
        properties = (self.metadata or {}).get("properties")
        return properties.get(name) if isinstance(properties, Mapping) else None


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """Settings of a subject; None is what has not been set. `others` are kept as they came."""

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
    """All versions up to this one are deleted (softly)."""

    version: int


@dataclass(frozen=True, slots=True)
class MaxIdValue:
    id: int


@dataclass(frozen=True, slots=True)
class Exists:
    """The value of a key that says it all."""


Value = SchemaValue | ConfigValue | ModeValue | DeleteSubjectValue | MaxIdValue | Exists


@dataclass(frozen=True, slots=True)
class Record:
    """A key, and its value or None: a tombstone."""

    key: Key
    value: Value | None
