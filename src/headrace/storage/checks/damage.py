"""Damage of a segment: how it is found, and what is known of it.

The checksum of a batch covers its records. Its offsets, its length, its leader epoch and the file itself are
checked by what is around them: the batches before it, the base offset of the next segment, the checkpoint of
leader epochs, and the list of the log's segments.
"""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.protocol.batch import HEADER_SIZE, BatchHeader
from headrace.storage.checks.scan import CHUNK
from headrace.storage.epochs import FILE_NAME, UNKNOWN_EPOCH, EpochStart, epoch_at
from headrace.storage.errors import CorruptLog
from headrace.storage.segment import Segment
from headrace.storage.segment_list import ListedSegment

STEP_BYTES = 256 * 1024


class Damage(NamedTuple):
    """Records of a closed segment that cannot be read: the offsets from `from_offset` to `end_offset`."""

    path: Path
    base_offset: int
    from_offset: int
    end_offset: int  # the base offset of the next segment
    why: str

    def __str__(self) -> str:
        return f"{self.path}: the offsets {self.from_offset} to {self.end_offset - 1} are damaged: {self.why}"


def ensure_offsets_fit(
    segment: Segment, position: int, header: BatchHeader, next_offset: int, limit: int
) -> None:
    """Check what no checksum covers: the batch's offsets have to follow those before it."""
    first, last = header.base_offset, header.last_offset
    if first < next_offset:
        raise CorruptLog(segment.path, position, f"a batch at offset {first} cannot follow {next_offset - 1}")
    if not first <= last < limit or not segment.offset_index.can_hold(last):
        raise CorruptLog(segment.path, position, f"offsets {first} to {last} do not fit in front of {limit}")


class EpochCheck:
    """Checks the leader epochs of a segment's batches, one after the other; not at all without `entries`.

    They never decrease, and agree with the checkpoint. That is durable for batches that were flushed, those
    before `flushed_to`. Of later ones it may lack the latest epochs, or have one whose batches are gone.
    """

    def __init__(self, segment: Segment, entries: Sequence[EpochStart], flushed_to: int) -> None:
        self._path = segment.path
        self._entries = entries
        self._flushed_to = flushed_to
        self._latest = entries[-1].epoch if entries else UNKNOWN_EPOCH
        self._epoch: int = epoch_at(entries, segment.base_offset - 1)
        self._begins_at = 0  # the position of the first batch of this epoch

    def ensure_fits(self, position: int, header: BatchHeader) -> None:
        """Raise CorruptLog with the position of the batch that is wrong, which may be an earlier one."""
        epoch, expected = header.leader_epoch, epoch_at(self._entries, header.base_offset)
        if expected == UNKNOWN_EPOCH:
            return
        if epoch != expected if header.base_offset < self._flushed_to else expected < epoch <= self._latest:
            raise CorruptLog(self._path, position, f"leader epoch is {epoch}, {FILE_NAME} says {expected}")
        if epoch < self._epoch:
            wrong = self._begins_at if self._epoch > self._latest else position
            raise CorruptLog(self._path, wrong, f"leader epoch {epoch} cannot follow {self._epoch}")
        if epoch > self._epoch:
            self._epoch, self._begins_at = epoch, position


class SegmentCheck:
    """Reads a segment to its end, in steps, in any thread; `damage` is the first damage found."""

    def __init__(
        self,
        segment: Segment,
        end_offset: int,
        listed: ListedSegment | None,
        epochs: Sequence[EpochStart] = (),
    ) -> None:
        self.damage: Damage | None = None
        self._steps = self._check(segment, end_offset, listed, EpochCheck(segment, epochs, end_offset))

    def step(self) -> int:
        """Read about STEP_BYTES; return how many bytes were read, 0 at the end."""
        return next(self._steps, 0)

    def run(self) -> Damage | None:
        while self.step():
            pass
        return self.damage

    def _check(
        self, segment: Segment, end_offset: int, listed: ListedSegment | None, epochs: EpochCheck
    ) -> Generator[int, None, None]:
        next_offset, read, why = segment.base_offset, 0, ""
        if listed is not None and segment.size != listed.size:
            why = other_size(segment.size, listed)
        try:
            with segment.private_scanner() as scanner:
                for position, header in scanner.checked_headers():
                    ensure_offsets_fit(segment, position, header, next_offset, end_offset)
                    epochs.ensure_fits(position, header)
                    next_offset = header.next_offset
                    read += header.size
                    if read >= STEP_BYTES:
                        yield read
                        read = 0
        except CorruptLog as error:
            why = f"byte {error.position}: {error.why}"
        except OSError as error:
            why = str(error)
        if why:
            self.damage = Damage(segment.path, segment.base_offset, next_offset, end_offset, why)


def other_size(size: int, listed: ListedSegment) -> str:
    return f"the file has {size:,} bytes, and had {listed.size:,} when it was closed"


class ReadAllowance:
    """How many bytes of segments the start of a broker may read because their files were touched."""

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, size: int) -> bool:
        """Return whether `size` bytes may be read."""
        self._left -= size
        return self._left >= 0


def changed_since(
    segment: Segment, listed: ListedSegment, end_offset: int, allowance: ReadAllowance
) -> Damage | None:
    """Return the damage of a segment that is opened: it is not the file that was listed.

    If only the modification time differs, the file may be a copy: its offsets are read as far as `allowance`
    goes, else only those of its first batch.
    """
    why, next_offset = "", segment.base_offset
    if segment.size != listed.size:
        why = other_size(segment.size, listed)
    elif segment.modified_ns != listed.modified_ns:
        may_read = allowance.take(segment.size)
        try:
            for position, header in segment.headers(chunk=CHUNK if may_read else HEADER_SIZE):
                ensure_offsets_fit(segment, position, header, next_offset, end_offset)
                next_offset = header.next_offset
                if not may_read:
                    break
        except CorruptLog as error:
            why = f"byte {error.position}: {error.why}"
        finally:
            segment.release()
    return Damage(segment.path, segment.base_offset, next_offset, end_offset, why) if why else None


def first_damage(damaged: Mapping[int, Damage], offset: int) -> Damage | None:
    """Return the first damage at `offset` or after it."""
    after = [each for each in damaged.values() if each.end_offset > offset]
    return min(after, key=lambda each: each.base_offset, default=None)
