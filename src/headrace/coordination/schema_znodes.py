"""The znodes about schemas: ours alone, as Kafka has none. Written from `_schemas`, which is what counts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

LARGEST: Final = 512 * 1024  # bytes: ZooKeeper takes a megabyte, all told


def node_name(name: str) -> str:
    """Any text as the name of a znode, which may hold no slash, and not be `.`, `..` or nothing."""
    quoted = quote(name, safe="", errors="backslashreplace")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E") or "%"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSubject:
    """A subject: which id each of its versions has, and which versions are deleted."""

    subject: str
    versions: Mapping[int, int]
    deleted: Sequence[int]
    parent: ClassVar[str] = "/schemas/subjects"

    @property
    def path(self) -> str:
        return f"{self.parent}/{node_name(self.subject)}"

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
        small = len(json.dumps(self.text)) <= LARGEST
        content = {
            "version": 1,
            "schemaType": self.kind,
            "schema": self.text if small else None,
            "references": list(self.references),
        }
        return json.dumps(content, separators=(",", ":")).encode()
