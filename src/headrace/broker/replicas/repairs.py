"""Damaged segments: they are checked, leadership is handed over, and another replica's records replace them.

Whoever cannot read a segment calls `Log.suspect_segment`. It is checked here, in a thread. If it is damaged,
a leader hands leadership over, and leaves the ISR with it. A follower copies the offsets of the segment from
its leader, or from another replica in the ISR if the leader's copy is damaged as well, and then replaces the
segment. A follower outside the ISR fetches nothing else before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from headrace.broker.peers.peer import Peer
from headrace.broker.replicas.partition import Partition
from headrace.broker.translate import FAILURES
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone, UnsupportedByPeer
from headrace.protocol.schema import fetch
from headrace.storage.checks.damage import Damage, SegmentCheck
from headrace.storage.checks.repair import SegmentRepair
from headrace.storage.log import Log
from headrace.storage.topics import parse_directory

_VERSIONS = range(15, 18)
_TIMEOUT_S = 30.0
_FETCH_BYTES = 1024 * 1024
_WAIT_MS = 500
_ATTEMPTS = 20  # to fetch records that are not committed yet
_ERROR_NAMES = {each.value: each.name for each in ErrorCode}
_RETRY_S = 30.0
_NO_SESSION = -1
REPAIRING: Final = -2
"""As a replica id, Kafka's debugging consumer: a broker that copies the offsets of a damaged segment."""
_UNBOUNDED = 2**63

logger = logging.getLogger(__name__)


class _RepairFailed(KafkaError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    """The other replica has not got the records, or does not return them now."""


class Repairs:
    """Finds, reports and repairs the damaged segments of this broker, one at a time."""

    def __init__(
        self,
        broker_id: int,
        partitions: Mapping[TopicPartition, Partition],
        *,
        suspected: Callable[[], set[Log]],
        live_brokers: Callable[[], Collection[int]],
        connect_to: Callable[[int], Awaitable[Peer]],
        consider: Callable[[Partition], None],
    ) -> None:
        """`suspected` returns the logs with segments that are damaged or to be checked.

        `consider` proposes another ISR if the partition wants one.
        """
        self._broker_id = broker_id
        self._partitions = partitions
        self._suspected = suspected
        self._live_brokers = live_brokers
        self._connect_to = connect_to
        self._consider = consider
        self._not_before: dict[TopicPartition, float] = {}  # repairs that have failed are retried then
        self._reported: dict[TopicPartition, str] = {}  # the last message
        self._repairing: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Check the segments that are suspect; hand leadership over, or begin to repair."""
        affected = self._affected()
        for partition in affected:
            await self._check_suspects(partition)
            if partition.leadership is not None and partition.log.damaged:
                self._hand_over(partition)
        self._reported = {id_: each for id_, each in self._reported.items() if id_ in self._partitions}
        if affected and (self._repairing is None or self._repairing.done()):
            self._repairing = asyncio.get_running_loop().create_task(self._repair_all(affected))

    def stop(self) -> None:
        if self._repairing is not None:
            self._repairing.cancel()

    def _affected(self) -> list[Partition]:
        suspected, found = self._suspected(), []
        for log in tuple(suspected):
            id_ = parse_directory(log.directory.name)
            partition = None if id_ is None else self._partitions.get(id_)
            if not log.damaged and not log.suspects:
                suspected.discard(log)
            elif partition is not None and partition.log is log and log.offline is None:
                found.append(partition)
        return found

    async def _check_suspects(self, partition: Partition) -> None:
        log = partition.log
        for base_offset in sorted(log.suspects):
            cuts, bases = log.cuts, [segment.base_offset for segment in log.segments]
            if base_offset not in bases:
                log.suspects.discard(base_offset)
                continue
            damage = await asyncio.to_thread(check_of(partition, bases.index(base_offset)).run)
            if log.cuts != cuts or log.offline is not None:
                return  # segments were deleted or replaced meanwhile: check again
            log.suspects.discard(base_offset)
            if damage is None:
                log.damaged.pop(base_offset, None)
            elif log.damaged.get(base_offset) != damage:
                log.note_damage(damage)
                logger.error("%s: %s", partition.id, log.damaged[base_offset])

    def _hand_over(self, partition: Partition) -> None:
        others = sorted({*partition.isr} & {*self._live_brokers()} - {self._broker_id})
        damages = ", ".join(f"{each.from_offset} to {each.end_offset - 1}" for each in _ordered(partition))
        if others:
            next_step = (
                f"leadership is handed over to one of the brokers {others}, from which this broker then "
                f"copies the offsets {damages}"
            )
        else:
            next_step = (
                "no other replica is in sync: this broker leads on, and answers fetches of the offsets "
                f"{damages} with KAFKA_STORAGE_ERROR. Restore the file from a backup while the broker is "
                "stopped, or have consumers continue after these offsets"
            )
        self._report(partition, next_step)
        self._consider(partition)

    def _report(self, partition: Partition, message: str) -> None:
        if self._reported.get(partition.id) != message:
            self._reported[partition.id] = message
            logger.error("%s: %s", partition.id, message)

    async def _repair_all(self, partitions: list[Partition]) -> None:
        now = asyncio.get_running_loop().time()
        for partition in partitions:
            if self._is_repairable(partition) and self._not_before.get(partition.id, 0) <= now:
                try:
                    await self._repair(partition)
                except Exception:  # otherwise no other partition would be repaired
                    logger.exception("%s could not be repaired", partition.id)
                    self._failed(partition)

    def _is_repairable(self, partition: Partition) -> bool:
        return (
            bool(partition.log.damaged)
            and self._partitions.get(partition.id) is partition
            and partition.log.offline is None
            and partition.leader not in {-1, self._broker_id}
        )

    def _failed(self, partition: Partition) -> None:
        partition.repair_failed = True
        self._not_before[partition.id] = asyncio.get_running_loop().time() + _RETRY_S

    async def _repair(self, partition: Partition) -> None:
        """Replace the damaged segments of a follower, the oldest first."""
        while self._is_repairable(partition):
            damage = _ordered(partition)[0]
            live = {*self._live_brokers()}
            others = [each for each in partition.isr if each in live - {partition.leader, self._broker_id}]
            for source in [partition.leader, *others]:
                try:
                    await self._copy(partition, damage, source)
                    break
                except (PeerGone, UnsupportedByPeer, OSError, *FAILURES) as error:
                    self._report(
                        partition, f"{damage.path} could not be repaired from broker {source}: {error}"
                    )
            else:
                self._failed(partition)
                return
        self._not_before.pop(partition.id, None)

    async def _copy(self, partition: Partition, damage: Damage, source: int) -> None:
        """Copy the offsets of a segment from another broker, and replace the segment."""
        log = partition.log
        repair = await asyncio.to_thread(SegmentRepair, log, damage)
        try:
            repair.skip_to(log.log_start_offset)
            peer = await self._connect_to(source)
            try:
                while not repair.is_complete:
                    data = await self._fetch(peer, partition, repair.next_offset, damage.end_offset)
                    if data.records:
                        await asyncio.to_thread(repair.take, data.records)
                    else:
                        repair.skip_to(damage.end_offset)
            finally:
                peer.close()
            await asyncio.to_thread(repair.finish)
            if repair.is_stale:
                raise _RepairFailed("segments were deleted or replaced meanwhile")
            repair.install()
        finally:
            await asyncio.to_thread(repair.close)
        await asyncio.to_thread(log.list_segments)
        await asyncio.to_thread(log.unlink_deleted)
        self._reported.pop(partition.id, None)
        logger.warning(
            "%s: %s is repaired: its offsets %d to %d were copied from broker %d",
            partition.id,
            damage.path,
            damage.base_offset,
            damage.end_offset - 1,
            source,
        )

    async def _fetch(
        self, peer: Peer, partition: Partition, offset: int, end_offset: int
    ) -> fetch.PartitionData:
        """Return committed records from `offset` on; an empty response means that there are none.

        Fetch as a consumer: the source must not take the offset for the log end offset of a follower.
        """
        wanted = fetch.FetchPartition(
            partition=partition.id.partition,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=_FETCH_BYTES,
        )
        request = fetch.FetchRequest(
            replica_state=fetch.ReplicaState(replica_id=REPAIRING),
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            session_id=0,
            session_epoch=_NO_SESSION,
            topics=[fetch.FetchTopic(topic_id=partition.topic_id, partitions=[wanted])],
            forgotten_topics_data=[],
            rack_id="",
        )
        for _ in range(_ATTEMPTS):
            response: fetch.FetchResponse = await peer.ask(request, _VERSIONS, timeout_s=_TIMEOUT_S)
            found = [data for topic in response.responses for data in topic.partitions]
            code = response.error_code or (found[0].error_code if found else ErrorCode.NONE)
            if code:
                raise _RepairFailed(f"it answers error {_ERROR_NAMES.get(code, code)} for offset {offset}")
            if found and (found[0].records or found[0].high_watermark >= end_offset):
                return found[0]
            await asyncio.sleep(max(_WAIT_MS, response.throttle_time_ms) / 1000)
        raise _RepairFailed(f"the records up to offset {end_offset} are not committed, or it throttles")


def check_of(partition: Partition, number: int) -> SegmentCheck:
    """Return the check of a segment, by its number.

    A wrong leader epoch counts as damage if there is another replica. Else nobody follows this one, and the
    records can be read all the same.
    """
    log = partition.log
    base_offset, *after = [segment.base_offset for segment in log.segments[number : number + 2]]
    epochs = log.epochs.entries if len(partition.replicas) > 1 else ()
    end_offset = after[0] if after else _UNBOUNDED
    return SegmentCheck(log.segments[number], end_offset, log.listed.entries.get(base_offset), epochs)


def _ordered(partition: Partition) -> list[Damage]:
    return sorted(partition.log.damaged.values(), key=lambda each: each.base_offset)
