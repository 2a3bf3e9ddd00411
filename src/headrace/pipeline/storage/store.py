"""Small files on storage that several machines share, with writes that fail if someone else was first."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Stored:
    """A file, and what changes with every write to it."""

    content: bytes
    version: str
    modified: datetime


class Store(Protocol):
    """Keys are paths with slashes, relative to the root of the store."""

    def read(self, key: str) -> Stored | None:
        """Return a file; None if there is none."""

    def write(self, key: str, content: bytes) -> None:
        """Create or replace a file; readers see the old content or the new one."""

    def create(self, key: str, content: bytes) -> str | None:
        """Create a file and return its version; None if the file exists."""

    def replace(self, key: str, content: bytes, version: str) -> str | None:
        """Replace a file and return its new version; None if it does not have that version any more."""

    def delete(self, key: str) -> None:
        """Delete a file, if there is one."""

    def children(self, key: str) -> Iterable[str]:
        """Return the names of files and directories in a directory; nothing if it does not exist."""

    def delete_tree(self, key: str) -> None:
        """Delete a directory."""
