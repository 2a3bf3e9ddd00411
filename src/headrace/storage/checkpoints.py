"""Checkpoint files: a version, a count, and a line per entry.

    0
    2
    orders 0 1204
    orders 1 998

A checkpoint is replaced as a whole, by rename. `LogDirectory` and `LeaderEpochs` each handle an unreadable
one in their own way.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path

from headrace.protocol.ids import TopicPartition
from headrace.storage.errors import StorageError
from headrace.storage.files import write_atomically

_VERSION = 0


class CorruptCheckpoint(StorageError):
    """The file is not a checkpoint, or is incomplete."""


class OffsetCheckpoint(MutableMapping[TopicPartition, int]):
    """An offset of each partition, and the file that stores them, which is written only after a change."""

    def __init__(self, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
        """`offsets` were read from `path`, as far as it could be read."""
        self._path = path
        self._offsets = dict(offsets)
        self._changes = 1  # the first write replaces a file that could not be read
        self._stored = 0  # how many of the changes are in the file

    def __getitem__(self, partition: TopicPartition) -> int:
        return self._offsets[partition]

    def __setitem__(self, partition: TopicPartition, offset: int) -> None:
        if self._offsets.get(partition) != offset:
            self._offsets[partition] = offset
            self._changes += 1

    def __delitem__(self, partition: TopicPartition) -> None:
        del self._offsets[partition]
        self._changes += 1

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def prepare(self) -> Callable[[], None]:
        """Copy the offsets if they have changed; return a function that writes the copy, in any thread.

        It writes nothing if later changes are in the file already. Two of them must not run at once.
        """
        changes = self._changes
        offsets = dict(self._offsets) if changes > self._stored else {}

        def write() -> None:
            if changes > self._stored:
                write_offsets(self._path, offsets)
                self._stored = changes

        return write


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return the offset of each partition in the file; an absent or empty file has none.

    Kafka creates these files before it has anything to write.
    """
    if path.exists() and not path.stat().st_size:
        return {}
    offsets = {}
    for line in read_lines(path):
        try:
            topic, partition, offset = line.split(" ")
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise CorruptCheckpoint(f"{path}: {line!r} is not a topic, a partition and an offset") from None
    return offsets


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    write_lines(path, (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()))


def read_lines(path: Path) -> list[str]:
    """Return the entries of a checkpoint file; an absent file has none."""
    try:
        version, count, *lines = path.read_text("utf-8").splitlines()
        announced = int(count)
    except FileNotFoundError:
        return []
    except ValueError:  # too few lines, a count that is not a number, or bytes that are not UTF-8
        raise CorruptCheckpoint(f"{path} is not a checkpoint file") from None
    if version != str(_VERSION):
        raise CorruptCheckpoint(f"{path} has version {version!r}, expected {_VERSION}")
    if len(lines) != announced:
        raise CorruptCheckpoint(f"{path} announces {announced} entries and has {len(lines)}")
    return lines


def write_lines(path: Path, entries: Iterable[str], *, sync: bool = True) -> None:
    lines = list(entries)
    content = "".join(f"{line}\n" for line in [_VERSION, len(lines), *lines])
    write_atomically(path, content.encode(), sync=sync)
