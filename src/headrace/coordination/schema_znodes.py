"""The znodes of schemas, which Kafka does not have: copies of the topic `_schemas`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

LARGEST: Final = 512 * 1024  # bytes: ZooKeeper's limit is one megabyte for a whole request


def node_name(name: str) -> str:
    """Return a valid znode name for any text: without slashes, and neither empty nor `.` nor `..`."""
    quoted = quote(name, safe="", errors="backslashreplace")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E") or "%"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSubject:
    """A subject: the id of each version, and the deleted versions."""

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
    """The schema of an id; a text that is too large for ZooKeeper is only in the topic."""

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
