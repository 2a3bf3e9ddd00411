"""Conditional writes on a file system that has only one: creating a file that does not exist yet.

A file is a directory with its versions, 1, 2 and so on, and the last one counts. To replace version 7 is to
create 8, which one process succeeds in. A deletion is a version as well, so that numbers are not used again.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.storage.remote_path import Stored

SUFFIX: Final = ".versions"  # of a file's directory
KEPT: Final = 16  # versions, so that a process that was stopped meanwhile does not create an old one again
_ATTEMPTS: Final = 100  # while other processes write the same file
_TOKEN_BYTES: Final = 16
_OF_OTHERS: Final = ""  # the version of a file that has none, which cannot be replaced
_UNKNOWN: Final = datetime.min.replace(tzinfo=UTC)


class File(NamedTuple):
    content: bytes
    modified: datetime


class Files(Protocol):
    """Files of a file system; paths are relative to its root, with slashes. Every call is atomic."""

    def names(self, path: str) -> Iterable[str]:
        """Return the names in a directory; nothing if it does not exist."""

    def read(self, path: str) -> File | None:
        """Return a file; None if there is none."""

    def create(self, path: str, content: bytes) -> bool:
        """Create a file with its content, and its directories; False if it exists."""

    def delete(self, path: str) -> None:
        """Delete a file or a directory with all that is in it, if there is one."""


@dataclass(frozen=True, slots=True)
class _Version:
    number: int
    token: str  # random: after a deletion of the whole directory, numbers begin at 1 again
    content: bytes | None  # None: the file is deleted
    modified: datetime = field(default=_UNKNOWN, compare=False)

    def __str__(self) -> str:
        return f"{self.number}.{self.token}"


class VersionedStore:
    """A `Store` on a file system; it also reads files of others, as Spark's. `url` is for messages."""

    def __init__(self, url: str, files: Files) -> None:
        self._url = url
        self._files = files

    def read(self, key: str) -> Stored | None:
        last = self._last(key)
        if last is None:
            other = self._files.read(key)
            return None if other is None else Stored(other.content, _OF_OTHERS, other.modified)
        return None if last.content is None else Stored(last.content, str(last), last.modified)

    def write(self, key: str, content: bytes) -> None:
        self._append_unconditionally(key, content)

    def create(self, key: str, content: bytes) -> str | None:
        last = self._last(key)
        if last is not None and last.content is not None:
            return None
        return self._append(key, last, content)

    def replace(self, key: str, content: bytes, version: str) -> str | None:
        last = self._last(key)
        if last is None or last.content is None or str(last) != version:
            return None
        return self._append(key, last, content)

    def delete(self, key: str) -> None:
        found = self.read(key)
        if found is not None and found.version == _OF_OTHERS:
            self._files.delete(key)
        elif found is not None:
            self._append_unconditionally(key, None)

    def children(self, key: str) -> Iterable[str]:
        for name in sorted(self._files.names(key)):
            if not name.endswith(SUFFIX):
                yield name
            elif self.read(f"{key}/{name}".lstrip("/").removesuffix(SUFFIX)) is not None:
                yield name.removesuffix(SUFFIX)

    def delete_tree(self, key: str) -> None:
        self._files.delete(key)

    def _append_unconditionally(self, key: str, content: bytes | None) -> None:
        """Append a version after whichever is the last one."""
        for _ in range(_ATTEMPTS):
            if self._create(key, self._last(key), content) is not None:
                return
        raise PipelineError(f"{self._url}/{key} is written by too many other processes")

    def _append(self, key: str, after: _Version | None, content: bytes) -> str | None:
        """Create the version after another one; None if that one is not the last any more."""
        created = self._create(key, after, content)
        if created is None:
            return None
        if self._next_number(key) > created.number + KEPT:
            return None  # perhaps the number was free because it had been cleaned up
        if after is not None and self._version(key, after.number) != after:
            if self._next_number(key) == created.number + 1:
                self._files.delete(_path(key, created.number))  # the directory was deleted meanwhile
            return None
        return str(created)

    def _create(self, key: str, after: _Version | None, content: bytes | None) -> _Version | None:
        """Create the file of the next version and clean up old ones; None if it exists."""
        number = 1 if after is None else after.number + 1
        token = secrets.token_hex(_TOKEN_BYTES)
        data = token.encode() if content is None else token.encode() + b"\n" + content
        if not self._files.create(_path(key, number), data):
            return None
        for old in self._numbers(key):
            if old <= number - KEPT:
                self._files.delete(_path(key, old))
        return _Version(number, token, content)

    def _next_number(self, key: str) -> int:
        return max(self._numbers(key), default=0) + 1

    def _last(self, key: str) -> _Version | None:
        for _ in range(_ATTEMPTS):
            numbers = self._numbers(key)
            if not numbers:
                return None
            if (found := self._version(key, max(numbers))) is not None:
                return found
        raise PipelineError(f"{self._url}/{key} changes faster than it can be read")

    def _numbers(self, key: str) -> list[int]:
        return [int(name) for name in self._files.names(key + SUFFIX) if name.isdigit()]

    def _version(self, key: str, number: int) -> _Version | None:
        found = self._files.read(_path(key, number))
        if found is None:
            return None
        token, separator, content = found.content.partition(b"\n")
        return _Version(number, token.decode(), content if separator else None, found.modified)


def _path(key: str, number: int) -> str:
    return f"{key}{SUFFIX}/{number:012}"
