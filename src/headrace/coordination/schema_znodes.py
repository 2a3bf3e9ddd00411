"""The znodes about schemas: ours alone, as Kafka has none. Written from `_schemas`, which is what counts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

LARGEST: Final = 512 * 1024  # bytes: ZooKeeper takes a megabyte, all told


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSubject:
    """A subject: which id each of its versions has, and which versions are deleted."""

    subject: str
    versions: Mapping[int, int]
    deleted: Sequence[int]
    parent: ClassVar[str] = "/schemas/subjects"

    @property
    def path(self) -> str:
        return f"{self.parent}/{quote(self.subject, safe='') or '%'}"

    def encode(self) -> bytes:
        versions = {str(version): schema_id for version, schema_id in self.versions.items()}
        content = {"version": 1, "subject": self.subject, "versions": versions, "deleted": list(self.deleted)}
        return json.dumps(content, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaText:
    """What an id stands for; a text that is too large for ZooKeeper is only in the topic."""

    name: str
    kind: str
    text: str
    references: Sequence[Mapping[str, Any]]
    parent: ClassVar[str] = "/schemas/ids"

    @property
    def path(self) -> str:
        return f"{self.parent}/{self.name}"

    def encode(self) -> bytes:
        small = len(self.text.encode()) <= LARGEST
        content = {
            "version": 1,
            "schemaType": self.kind,
            "schema": self.text if small else None,
            "references": list(self.references),
        }
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
