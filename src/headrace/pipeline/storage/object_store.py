"""S3, Google Cloud Storage and Azure, through obstore, with the settings of each in its usual variables.

Several machines share such storage, so a conditional write fails if someone else was first.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from headrace.pipeline.errors import PipelineError

if TYPE_CHECKING:
    import obstore.store

_RETRIES: Final = timedelta(seconds=8)  # less than a lease, so that its holder notices in time
SCHEMES: Final = ("s3", "s3a", "gs", "abfs", "abfss")


@dataclass(frozen=True, slots=True)
class Stored:
    """A file, and what changes with every write to it."""

    content: bytes
    version: str
    modified: datetime


class ObjectStore:
    """Keys are paths with slashes, relative to the root of the store. `url` is only for messages."""

    def __init__(self, url: str, store: "obstore.store.ObjectStore") -> None:
        self._url = url
        self._store = store
        self._obstore: Any = import_module("obstore")  # an optional package
        self._errors: Any = import_module("obstore.exceptions")

    @classmethod
    def at(cls, url: str) -> "ObjectStore":
        """Return the store of a URL, whose credentials are in the environment."""
        try:
            from obstore.store import from_url  # noqa: PLC0415  an optional package
        except ImportError as error:
            raise PipelineError(f"{url} needs obstore: pip install 'headrace[spark]'") from error
        with _in_words(url):
            return cls(url, from_url(url, retry_config={"max_retries": 5, "retry_timeout": _RETRIES}))

    def read(self, key: str) -> Stored | None:
        with _in_words(self._url):
            try:
                found = self._obstore.get(self._store, key)
            except FileNotFoundError:
                return None
            return Stored(bytes(found.bytes()), _version(found.meta), found.meta["last_modified"])

    def write(self, key: str, content: bytes) -> None:
        with _in_words(self._url):
            self._obstore.put(self._store, key, content)

    def create(self, key: str, content: bytes) -> str | None:
        """Create a file and return its version; None if the file exists."""
        with _in_words(self._url):
            try:
                return _version(self._obstore.put(self._store, key, content, mode="create"))
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
                return None

    def replace(self, key: str, content: bytes, version: str) -> str | None:
        """Replace a file and return its new version; None if it does not have that version any more."""
        with _in_words(self._url):
            try:
                return _version(self._obstore.put(self._store, key, content, mode=json.loads(version)))
            except (FileNotFoundError, self._errors.PreconditionError):
                return None

    def delete(self, key: str) -> None:
        with _in_words(self._url), suppress(FileNotFoundError):
            self._obstore.delete(self._store, key)

    def children(self, key: str) -> Iterable[str]:
        """Return the names of files and directories in a directory; nothing if it does not exist."""
        prefix = f"{key}/" if key else ""
        return sorted({path.removeprefix(prefix).partition("/")[0] for path in self._files(key)})

    def delete_tree(self, key: str) -> None:
        with _in_words(self._url):
            if files := self._files(key):
                self._obstore.delete(self._store, files)

    def _files(self, key: str) -> list[str]:
        """Return the files in a directory and below it.

        Hadoop marks directories with empty objects whose names end in a slash. obstore lists them without the
        slash, and cannot delete them; a directory that has only these does not exist for us.
        """
        with _in_words(self._url):
            listed = chain.from_iterable(self._obstore.list(self._store, f"{key}/" if key else None))
            return [item["path"] for item in listed if item["size"]]


def _version(meta: Mapping[str, Any]) -> str:
    """S3 and Azure compare the ETag, Google the generation, which obstore calls the version."""
    return json.dumps({name: meta[name] for name in ("e_tag", "version") if meta[name] is not None})


@contextmanager
def _in_words(url: str) -> Iterator[None]:
    """Raise PipelineError for an error of the store, with its first line: the rest is for developers."""
    from obstore.exceptions import BaseError  # noqa: PLC0415

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise PipelineError(f"{url}: {first}") from None


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A path on an object store, with the methods of pathlib.Path that the state of a pipeline uses.

    `root` is the URL of the store, without a slash at its end, and `key` the path in it.
    """

    root: str
    store: ObjectStore = field(repr=False, compare=False)
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

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete a file; FileNotFoundError if there is none, unless that is `missing_ok`."""
        if not missing_ok:
            self.read_text()
        self.store.delete(self.key)


StoragePath: TypeAlias = Path | RemotePath
