"""Small files on storage that several machines share, with writes that fail if someone else was first.

A path has the methods of pathlib.Path that the state of a pipeline uses.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias


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


@dataclass(frozen=True, slots=True)
class RemotePath:
    """`root` is the URL of the store, without a slash at its end, and `key` the path in it."""

    root: str
    store: Store = field(repr=False, compare=False)
    key: str = ""

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(self.root, self.store, f"{self.key}/{name}".lstrip("/"))

    def __str__(self) -> str:
        return f"{self.root}/{self.key}".rstrip("/")

    @property
    def name(self) -> str:
        return str(self).rpartition("/")[2]

    @property
    def parent(self) -> "RemotePath":
        return RemotePath(self.root, self.store, self.key.rpartition("/")[0])

    def is_dir(self) -> bool:
        return any(True for _ in self.store.children(self.key))

    def iterdir(self) -> Iterator["RemotePath"]:
        return (self / name for name in self.store.children(self.key))

    def read_text(self) -> str:
        """Return the content of a file; FileNotFoundError if there is none."""
        found = self.store.read(self.key)
        if found is None:
            raise FileNotFoundError(str(self))
        return found.content.decode()

    def write_text(self, text: str) -> None:
        self.store.write(self.key, text.encode())

    def touch(self) -> None:
        self.write_text("")

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: directories exist as long as there are files in them."""

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete a file; FileNotFoundError if there is none, unless that is `missing_ok`."""
        if not missing_ok:
            self.read_text()
        self.store.delete(self.key)


StoragePath: TypeAlias = Path | RemotePath
