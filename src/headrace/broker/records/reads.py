"""Reading the partitions of a Fetch: consumers read committed records, followers up to the log end offset.

    read = reads.fetch(entries, reader)

What was read is there at once, unless the request has to wait: for min_bytes, or for a thread that loads what
is not in the page cache. Then it is a coroutine.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from headrace.broker.errors import TooOldForZstd
from headrace.broker.image import ClusterImage
from headrace.broker.meters import Meters, TopicMeter
from headrace.broker.records.fetch_sessions import SessionPartition
from headrace.broker.replicas.cold_reads import without_blocking
from headrace.broker.replicas.committed_log import Fetched, Isolation
from headrace.broker.replicas.partition import Partition, monotonic_ms
from headrace.broker.replicas.purgatory import WaitingFetch
from headrace.broker.replicas.replicas import Replicas
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.slices import Steps, at_once, in_slices
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.batch import read_header
from headrace.protocol.compression import Compression
from headrace.protocol.errors import KafkaError
from headrace.storage.errors import OffsetOutOfRange
from headrace.storage.page_cache import NotCached, SeveralNotCached

READ_AT_ONCE: Final = 256
"""Partitions of a request that is read without interruption; one with more is read in slices."""
STEP: Final = 16  # partitions between two yields


class FetchingReplica(NamedTuple):
    """The follower that fetches."""

    broker_id: int
    broker_epoch: int


class Reader(NamedTuple):
    """Who reads, and how: the same for all partitions of a request."""

    find: Callable[[SessionPartition], Partition]
    """Returns a partition that the reader may read, or raises the reader's error."""
    room: Callable[[], int]
    """Returns how many bytes of records the response may have now; its first batch may be larger."""
    min_bytes: int
    max_wait_ms: int
    isolation: Isolation
    rack: str
    replica: FetchingReplica | None
    knows_zstd: bool


class Read:
    """What was read of the partitions of a request, in its order."""

    __slots__ = ("is_urgent", "meters", "parts", "size")

    def __init__(self) -> None:
        self.parts: list[tuple[SessionPartition, Fetched]] = []
        self.meters: list[TopicMeter] = []  # of the same partitions
        self.size = 0
        self.is_urgent = False  # a part has an error, a diverging epoch or another replica

    def add(self, entry: SessionPartition, fetched: Fetched, meter: TopicMeter) -> None:
        self.parts.append((entry, fetched))
        self.meters.append(meter)
        self.size += len(fetched.data)
        self.is_urgent = self.is_urgent or fetched.is_urgent

    def count(self, *, for_replica: bool) -> None:
        """Count the data of the response; data that was read before a wait is not counted."""
        for (_, fetched), meter in zip(self.parts, self.meters, strict=True):
            size = len(fetched.data)
            if not size and not fetched.error_code:
                continue
            meter.failed_fetches += not size
            if for_replica:
                meter.replicated_out += size
            else:
                meter.fetches += 1
                meter.bytes_out += size


class Reads:
    """Reads partitions of this broker for consumers and followers."""

    def __init__(
        self,
        image: ClusterImage,
        replicas: Replicas,
        meters: Meters,
        *,
        config: Callable[[], BrokerConfig],
        loop: Callable[[], asyncio.AbstractEventLoop],
        ensure_lease: Callable[[Partition], None],
    ) -> None:
        self._image = image
        self._replicas = replicas
        self._meters = meters
        self._config = config
        self._loop = loop
        self._ensure_lease = ensure_lease

    def fetch(
        self, entries: Sequence[SessionPartition], reader: Reader
    ) -> "Read | Coroutine[Any, Any, Read]":
        """Read immediately; wait only if less than min_bytes are available, or if a read would block.

        For at most READ_AT_ONCE partitions.
        """
        try:
            read = at_once(self._read(entries, reader, cached_only=True))
        except NotCached as missing:
            return without_blocking(partial(self._read_in_slices, entries, reader), missing)
        if _is_enough(read, reader):
            return read
        partitions = at_once(self._find(entries, reader))
        waiting = self._waiting(partitions, reader, missing=reader.min_bytes - read.size)
        return self._wait_and_read(waiting, entries, reader)

    def fetch_many(
        self, entries: Sequence[SessionPartition], reader: Reader
    ) -> "Steps[Read | Coroutine[Any, Any, Read]]":
        """Fetch from so many partitions that appends may happen between the reads.

        The purgatory entry is created before the first read, so that no such append is missed.
        """
        partitions = yield from self._find(entries, reader)
        waiting = self._waiting(partitions, reader, missing=reader.min_bytes)
        is_waiting = False
        try:
            read = yield from self._read(entries, reader, cached_only=True)
            if _is_enough(read, reader):
                return read
            waiting.arrived(read.size)
            is_waiting = True
            return self._wait_and_read(waiting, entries, reader)
        except NotCached as missing:
            return without_blocking(partial(self._read_in_slices, entries, reader), missing)
        finally:
            if not is_waiting:
                waiting.wake()

    async def _wait_and_read(
        self, waiting: WaitingFetch, entries: Sequence[SessionPartition], reader: Reader
    ) -> Read:
        try:
            await waiting.done
        finally:
            waiting.wake()  # removes it from the purgatory if the client has disconnected
        return await without_blocking(partial(self._read_in_slices, entries, reader))

    def _waiting(self, partitions: Sequence[Partition], reader: Reader, *, missing: int) -> WaitingFetch:
        return WaitingFetch(
            partitions,
            missing=missing,
            max_wait_ms=reader.max_wait_ms,
            loop=self._loop(),
            as_replica=reader.replica is not None,
        )

    def _find(self, entries: Sequence[SessionPartition], reader: Reader) -> Steps[list[Partition]]:
        """Return the partitions that this broker has, and that the reader may read."""
        partitions = []
        for number, entry in enumerate(entries):
            if not number % STEP:
                yield
            try:
                partitions.append(reader.find(entry))
            except KafkaError:
                continue
        return partitions

    async def _read_in_slices(
        self, entries: Sequence[SessionPartition], reader: Reader, cached_only: bool
    ) -> Read:
        return await in_slices(self._read(entries, reader, cached_only=cached_only))

    def _read(self, entries: Sequence[SessionPartition], reader: Reader, *, cached_only: bool) -> Steps[Read]:
        """Read every partition; raise SeveralNotCached if a read of one or more of them would block."""
        room = reader.room()
        read = Read()
        missing: list[NotCached] = []
        for number, entry in enumerate(entries):
            if not number % STEP:
                yield
            limit = max(0, min(room - read.size, entry.max_bytes))
            try:
                partition = reader.find(entry)
                if not reader.knows_zstd and partition.log.config.compression is Compression.ZSTD:
                    raise TooOldForZstd(
                        f"{partition.id} is compressed with zstd, which this version of Fetch does not know "
                        "(UNSUPPORTED_COMPRESSION_TYPE)"
                    )
                one = self._read_for_consumer if reader.replica is None else self._read_for_replica
                fetched = one(
                    partition, entry, reader, limit, at_least_one=not read.size, cached_only=cached_only
                )
            except NotCached as error:
                missing.append(error)
            except FAILURES as error:
                read.add(entry, Fetched(error_code=error_code(error)), self._meters.of(entry.topic))
            else:
                read.add(entry, fetched, partition.meter)
        if missing:
            raise SeveralNotCached(missing)
        return read

    def _read_for_consumer(
        self,
        partition: Partition,
        entry: SessionPartition,
        reader: Reader,
        limit: int,
        *,
        at_least_one: bool,
        cached_only: bool,
    ) -> Fetched:
        nearest = self._nearest(partition, entry, reader.rack) if reader.rack else None
        if nearest is not None:
            return Fetched(
                b"",
                partition.high_watermark,
                partition.log.last_stable_offset(partition.high_watermark),
                partition.log.log_start_offset,
                preferred_replica=nearest,
            )
        partition.ensure_readable(entry.leader_epoch)
        try:
            return partition.read(
                entry.offset, limit, reader.isolation, at_least_one=at_least_one, cached_only=cached_only
            )
        except OffsetOutOfRange:
            # A consumer would reset its position. A stale leader does not have the newest records.
            if partition.leadership is not None:
                self._ensure_lease(partition)
            raise

    def _nearest(self, partition: Partition, entry: SessionPartition, rack: str) -> int | None:
        """Return a replica of the ISR in the consumer's rack that has the fetch offset (KIP-392), or None."""
        leadership, config, brokers = partition.leadership, self._config(), self._image.brokers
        if leadership is None or rack == config.rack or not config.sends_to_nearest:
            return None
        near = [
            (follower.log_end_offset, broker_id)
            for broker_id, follower in leadership.followers.items()
            if broker_id in leadership.isr
            and follower.log_end_offset >= entry.offset
            and broker_id in brokers
            and brokers[broker_id].rack == rack
        ]
        return max(near)[1] if near else None

    def _read_for_replica(
        self,
        partition: Partition,
        entry: SessionPartition,
        reader: Reader,
        limit: int,
        *,
        at_least_one: bool,
        cached_only: bool,
    ) -> Fetched:
        replica = reader.replica
        assert replica is not None, "a consumer reads otherwise"
        in_sync = replica.broker_id in partition.isr
        rate = self._replicas.rate_to_followers
        is_throttled = partition.throttled_for_followers and not in_sync
        if is_throttled and rate.is_exceeded(self._loop().time()):
            limit = 0
        partition.ensure_leader(entry.leader_epoch)
        diverging = partition.diverges(entry.offset, entry.last_epoch) if entry.last_epoch >= 0 else None
        if diverging is not None:
            fetched = Fetched(b"", partition.high_watermark, diverging=diverging)
        else:
            fetched = partition.read_as_replica(
                entry.offset, limit, at_least_one=at_least_one and limit > 0, cached_only=cached_only
            )
            partition.follower_fetches(
                replica.broker_id, entry.offset, broker_epoch=replica.broker_epoch, now_ms=monotonic_ms()
            )
            # The high watermark may have moved with this very fetch.
            fetched = fetched._replace(high_watermark=partition.high_watermark)
            if fetched.data:
                partition.serve_follower(replica.broker_id, entry.offset)
        if not in_sync:
            self._replicas.isr_changes.consider(partition)
        if is_throttled:
            rate.spend(len(fetched.data), self._loop().time())
        return fetched


def _is_enough(read: Read, reader: Reader) -> bool:
    """Return whether the response can be sent without waiting."""
    if read.size >= reader.min_bytes or read.is_urgent or reader.max_wait_ms <= 0 or not read.parts:
        return True
    # If a limit cut the data off, the next append would not add to the response.
    return bool(read.size) and any(_has_more(entry, part, reader.isolation) for entry, part in read.parts)


def _has_more(entry: SessionPartition, fetched: Fetched, isolation: Isolation) -> bool:
    """Return whether a limit or the end of a segment cut the data off before the last readable record."""
    position, next_offset = 0, entry.offset
    while position < len(fetched.data):
        header = read_header(fetched.data, position)
        next_offset = header.next_offset
        position += header.size
    is_committed = isolation is Isolation.READ_COMMITTED
    return next_offset < (fetched.last_stable_offset if is_committed else fetched.high_watermark)
