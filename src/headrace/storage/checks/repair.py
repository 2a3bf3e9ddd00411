"""Repairing a damaged closed segment with the batches of another replica.

    repair = SegmentRepair(log, damage)                           # in any thread, like the next two
    while not repair.is_complete:
        repair.take(batches fetched from `repair.next_offset`)
    repair.finish()
    repair.install()                                              # on the log's own thread

The new segment is written beside the damaged one, whose files are deleted only when the new one takes their
place. The log keeps its end and its other segments, so the replica may stay in the ISR meanwhile.
"""

import os

from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord
from headrace.storage.append.batches import read_batches, read_end_marker
from headrace.storage.checks.damage import Damage
from headrace.storage.compaction.swap import announce, put_in_place
from headrace.storage.files import REPAIRED, SEGMENT_SUFFIXES, file_name, names_in
from headrace.storage.log import Log
from headrace.storage.producers.producers import Producers, snapshots_in
from headrace.storage.replay import take_in_producer
from headrace.storage.segment import Segment
from headrace.storage.txn_index import AbortedTxn


class SegmentRepair:
    """A new copy of a damaged segment, while it is written."""

    def __init__(self, log: Log, damage: Damage) -> None:
        self._cuts = log.cuts  # first
        self._log = log
        self._damage = damage
        self._damaged = next(segment for segment in log.segments if segment.base_offset == damage.base_offset)
        self._earlier = [segment for segment in log.segments if segment.base_offset < damage.base_offset]
        self._remove()
        self._copy = Segment.create(
            log.directory, damage.base_offset, log.config, now_ms=log.now_ms(), suffix=REPAIRED
        )
        self._producers: Producers | None = None
        self._aborted: list[AbortedTxn] = []
        self.next_offset = damage.base_offset
        self.is_complete = False

    @property
    def is_stale(self) -> bool:
        """Whether segments were deleted, replaced or truncated meanwhile: the repair has to start again."""
        return self._log.cuts != self._cuts or self._log.offline is not None

    def take(self, data: Buffer) -> None:
        """Append the batches of the segment in `data`; raise KafkaError if one of them does not fit."""
        position = 0
        view = memoryview(data)
        for batch in read_batches(view):
            header = batch.header
            if header.base_offset >= self._damage.end_offset:
                self.is_complete = True
                return
            if header.base_offset < self.next_offset or header.next_offset > self._damage.end_offset:
                raise InvalidRecord(
                    f"offsets {header.base_offset} to {header.last_offset} of the other replica are not "
                    f"within {self.next_offset} to {self._damage.end_offset - 1} (INVALID_RECORD)"
                )
            self._copy.append(view[position : position + header.size], [header])
            if header.is_transactional:  # the index needs the transactions that are aborted in this segment
                if self._producers is None:
                    self._producers = self._producers_before()
                aborted = take_in_producer(self._producers, header, batch.marker)
                if aborted is not None:
                    self._aborted.append(aborted)
            position += header.size
            self.next_offset = header.next_offset
        self.is_complete = self.next_offset == self._damage.end_offset

    def skip_to(self, offset: int) -> None:
        """Note that the other replica has nothing before `offset`."""
        self.next_offset = max(self.next_offset, min(offset, self._damage.end_offset))
        self.is_complete = self.next_offset == self._damage.end_offset

    def _producers_before(self) -> Producers:
        """Return the producers as they were at the beginning of the segment."""
        base_offset, directory = self._damage.base_offset, self._log.directory
        snapshots = [each for each in snapshots_in(names_in(directory)) if each <= base_offset]
        producers = Producers(directory, snapshots)
        producers.restore(start=0, end=base_offset)
        for number, segment in enumerate(self._earlier):
            ends = [each.base_offset for each in self._earlier[number + 1 :]]
            if min(ends, default=base_offset) <= producers.next_offset:
                continue
            with segment.private_scanner() as scanner:
                for position, header in scanner.headers():
                    if header.is_transactional and header.base_offset >= producers.next_offset:
                        batch = scanner.batch(position, header)
                        marker = read_end_marker(batch, header) if header.is_control else None
                        take_in_producer(producers, header, marker)
        return producers

    def finish(self) -> None:
        """Make the copy durable. Its modification time is that of the damaged file."""
        self._copy.txn_index.replace(self._aborted)
        self._copy.seal()
        self._copy.flush()
        self._copy.release()
        os.utime(self._copy.path, (self._damaged.created_ms / 1000, self._damaged.created_ms / 1000))

    def install(self) -> None:
        assert not self.is_stale, "the caller has checked it"
        log, damaged = self._log, self._damaged

        def swap() -> Segment:
            announce(log.directory, damaged.base_offset, REPAIRED)
            damaged.release()
            return put_in_place(log.directory, damaged.base_offset, log.config, log.discard, files=log.files)

        log.replace_segments([damaged], swap)

    def close(self) -> None:
        """Remove a copy that was not installed."""
        self._copy.release()
        self._remove()

    def _remove(self) -> None:
        for suffix in SEGMENT_SUFFIXES:
            name = file_name(self._damage.base_offset, suffix + REPAIRED)
            (self._log.directory / name).unlink(missing_ok=True)
