"""A tar.gz archive whose bytes depend only on the names and contents of its files."""

import gzip
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

_EPOCH_S: Final = 315532800  # 1980: the first year that zip files know, which some tools insist on
_LEVEL: Final = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the archive."""

    name: str
    content: Path | bytes
    executable: bool = False

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size


def write_archive(path: Path, entries: Iterable[Entry], advance: Callable[[int], None]) -> None:
    """Write the entries, sorted by name; `advance` gets the size of each. A failure leaves no archive."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with (
            beside.open("wb") as file,
            gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for entry in sorted(entries, key=lambda entry: entry.name):
                content = entry.content if isinstance(entry.content, bytes) else entry.content.read_bytes()
                header = tarfile.TarInfo(entry.name)
                header.size = len(content)
                header.mtime = _EPOCH_S
                header.mode = 0o755 if entry.executable else 0o644
                archive.addfile(header, BytesIO(content))
                advance(len(content))
        beside.rename(path)
    finally:
        beside.unlink(missing_ok=True)
