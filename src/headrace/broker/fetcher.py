"""Followers: one task for each leader fetches all the partitions that this broker follows there.

A follower's request says where its log ends and in which epoch its last record was written. A leader whose
log has parted from it answers where; the follower goes back to there and asks again. So there is one path:
a log that is empty, behind, ahead or on a side track ends up like its leader's.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.errors import NotLeader
from headrace.broker.partition import Partition
from headrace.broker.translate import FAILURES
from headrace.controller.channel import PeerGone
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.replication import follower
from headrace.replication.follower import EpochEnd, Position

if TYPE_CHECKING:
    from headrace.broker.peer import Peer
    from headrace.broker.server import Broker

VERSION = 17
_TIMEOUT_S = 30.0
_FIRST_RETRY_S, _LAST_RETRY_S = 0.05, 1.0
_SUSPICION_S = 2.0  # at most: whoever leads by then, the controller has said so
_OFFLINE_S = 30.0
_PATIENCE_S = 0.5  # for a partition that the leader refuses: an update is probably on its way
_EARLIEST, _LATEST, _ANY_REPLICA, _LIST_OFFSETS_VERSION = -2, -1, -2, 7
_FETCH_SETTINGS = (
    "replica.fetch.wait.max.ms",
    "replica.fetch.min.bytes",
    "replica.fetch.response.max.bytes",
    "replica.fetch.max.bytes",
)

logger = logging.getLogger(__name__)


class _Asked(NamedTuple):
    """What was last said of a partition in the session with its leader."""

    position: Position
    log_start_offset: int
    topic_id: bytes


class Fetchers:
    """The fetchers of a broker, by leader."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._by_leader: dict[int, Fetcher] = {}
        self._leaders: dict[TopicPartition, int] = {}

    def follow(self, partition: Partition) -> None:
        """The partition's leader may be another: fetch from there, or, if it is led here, from nobody."""
        leader = -1 if partition.leadership is not None else partition.leader
        before = self._leaders.get(partition.id, -1)
        if before not in {-1, leader}:
            self._by_leader[before].remove(partition.id)
        if leader == -1:
            self._leaders.pop(partition.id, None)
            return
        self._leaders[partition.id] = leader
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = Fetcher(self._broker, leader)
        fetcher.add(partition)

    def forget(self, id_: TopicPartition) -> None:
        """The partition is not on this broker any more."""
        leader = self._leaders.pop(id_, -1)
        if leader != -1:
            self._by_leader[leader].remove(id_)

    def leader_is_back(self, broker_id: int) -> None:
        """A leader may have another address: what is under way to the old one is given up."""
        fetcher = self._by_leader.get(broker_id)
        if fetcher is not None:
            fetcher.interrupt()

    def stop(self) -> None:
        for fetcher in self._by_leader.values():
            fetcher.stop()
        self._by_leader.clear()
        self._leaders.clear()


class Fetcher:
    """Fetches from one leader, in one session, as long as there is something to follow there."""

    def __init__(self, broker: "Broker", leader: int) -> None:
        self._broker = broker
        self._leader = leader
        self._partitions: dict[TopicPartition, Partition] = {}
        self._resting: dict[TopicPartition, float] = {}  # until when not to ask for it
        self._peer: Peer | None = None
        self._session_id = self._session_epoch = 0
        self._asked: dict[TopicPartition, _Asked] = {}
        self._changed = asyncio.Event()
        self._interrupting: asyncio.TimerHandle | None = None
        self._hung_up = False  # it was this broker that ended the connection
        self._suspicion: asyncio.TimerHandle | None = None
        self._task = broker.loop.create_task(self._run())

    def add(self, partition: Partition) -> None:
        self._partitions[partition.id] = partition
        self._resting.pop(partition.id, None)
        self._asked.pop(partition.id, None)
        self._changed.set()
        self._interrupt_soon()

    def remove(self, id_: TopicPartition) -> None:
        self._partitions.pop(id_, None)
        self._resting.pop(id_, None)

    def _interrupt_soon(self) -> None:
        """Do not let a new partition wait for the end of a long poll about the others."""
        if self._interrupting is None and self._peer is not None:
            self._interrupting = self._broker.loop.call_later(0.005, self.interrupt)

    def interrupt(self) -> None:
        self._interrupting = None
        if self._peer is not None:
            self._hung_up = True
            self._peer.close()

    def stop(self) -> None:
        self._task.cancel()
        self.interrupt()
        self._trust()

    async def _run(self) -> None:
        delay = 0.0
        while True:
            if not self._partitions:
                self._trust()
                self._changed.clear()
                await self._changed.wait()
            try:
                self._peer = await self._broker.connect_to(self._leader)
                self._trust()
                self._hung_up = False
                self._begin_session()
                while self._partitions:
                    await self._fetch(self._peer)
                    delay = 0.0
            except PeerGone as error:
                logger.debug("fetching from broker %d: %s", self._leader, error)
                if self._peer is not None and not self._hung_up:
                    self._suspect()
                # Not at all, the first time: the sooner it refuses, the better. But when new partitions have
                # interrupted the fetcher, more of them may be coming.
                await asyncio.sleep(max(delay, _FIRST_RETRY_S) if self._hung_up else delay)
                delay = min(max(2 * delay, _FIRST_RETRY_S), _LAST_RETRY_S)
            except Exception:
                logger.exception("fetching from broker %d failed and goes on", self._leader)
                await asyncio.sleep(_LAST_RETRY_S)
            finally:
                if self._peer is not None:
                    self._peer.close()
                self._peer = None

    def _suspect(self) -> None:
        """The leader has hung up. Until it answers again, which is tried at once, no client is sent there.

        If its process has ended, others lead in a moment. A client that was sent back to it would ask again
        only a second or more later; one that is told of no leader asks again right away.
        """
        if self._suspicion is None:
            self._broker.image.suspect(self._leader)
            self._suspicion = self._broker.loop.call_later(_SUSPICION_S, self._trust)

    def _trust(self) -> None:
        if self._suspicion is not None:
            self._suspicion.cancel()
            self._suspicion = None
            self._broker.image.trust(self._leader)

    # -- one request ---------------------------------------------------------------------------

    async def _fetch(self, peer: "Peer") -> None:
        await self._wait_for_rest()
        request = self._request()
        response: FetchResponse = await peer.ask(request, VERSION, timeout_s=_TIMEOUT_S)
        if response.error_code != ErrorCode.NONE:
            self._begin_session()
            await asyncio.sleep(_FIRST_RETRY_S)
            return
        if response.session_id:
            self._session_id = response.session_id
            self._session_epoch = self._session_epoch % (2**31 - 1) + 1
        names = {partition.topic_id: partition.id.topic for partition in self._partitions.values()}
        for topic in response.responses:
            for data in topic.partitions:
                id_ = TopicPartition(names.get(topic.topic_id, ""), data.partition_index)
                partition = self._partitions.get(id_)
                if partition is not None and self._stands_where_it_asked(partition):
                    await self._take(partition, data)
        if not response.session_id:
            self._begin_session()  # the leader keeps none for us: name every partition again

    def _stands_where_it_asked(self, partition: Partition) -> bool:
        """Whether an answer still counts: it is about the log as it was, and from the leader that it had."""
        asked = self._asked.get(partition.id)
        return asked is not None and asked.position == _position(partition)

    async def _wait_for_rest(self) -> None:
        """If every partition rests, so does the fetcher."""
        now = self._broker.loop.time()
        rests = [self._resting.get(id_, 0.0) - now for id_ in self._partitions]
        if rests and min(rests) > 0:
            await asyncio.sleep(min(rests))

    def _begin_session(self) -> None:
        self._session_id = self._session_epoch = 0
        self._asked.clear()

    def _request(self) -> FetchRequest:
        now = self._broker.loop.time()
        wanted = {
            id_: _Asked(_position(partition), partition.log.log_start_offset, partition.topic_id)
            for id_, partition in self._partitions.items()
            if self._resting.get(id_, 0) <= now
        }
        news = {id_: each for id_, each in wanted.items() if self._asked.get(id_) != each}
        forgotten = [
            (each.topic_id, id_.partition)
            for id_, each in self._asked.items()
            if id_ not in wanted or wanted[id_].topic_id != each.topic_id
        ]
        self._asked = wanted
        config = self._broker.config
        wait_ms, min_bytes, max_bytes, each_bytes = map(config.integer, _FETCH_SETTINGS)
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._broker.broker_id, replica_epoch=self._broker.broker_epoch
            ),
            max_wait_ms=wait_ms if len(wanted) == len(self._partitions) else min(wait_ms, 100),
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=self._topics(news, each_bytes),
            forgotten_topics_data=_forgotten(forgotten),
            rack_id="",
        )

    def _topics(self, news: dict[TopicPartition, _Asked], each_bytes: int) -> list[FetchTopic]:
        by_topic: dict[bytes, list[FetchPartition]] = {}
        for id_, asked in news.items():
            by_topic.setdefault(self._partitions[id_].topic_id, []).append(
                FetchPartition(
                    partition=id_.partition,
                    current_leader_epoch=asked.position.leader_epoch,
                    fetch_offset=asked.position.offset,
                    last_fetched_epoch=asked.position.last_epoch,
                    log_start_offset=asked.log_start_offset,
                    partition_max_bytes=each_bytes,
                )
            )
        return [FetchTopic(topic_id=topic_id, partitions=each) for topic_id, each in by_topic.items()]

    # -- what the leader says of one partition -------------------------------------------------

    async def _take(self, partition: Partition, data: PartitionData) -> None:
        try:
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._start_over(partition)
            elif data.error_code != ErrorCode.NONE:
                self._rest(partition, f"error {data.error_code}")
            elif data.diverging_epoch.epoch >= 0:
                parted = data.diverging_epoch
                await self._go_back(partition, EpochEnd(parted.epoch, parted.end_offset))
            else:
                partition.append_as_follower(
                    data.records or b"",
                    high_watermark=data.high_watermark,
                    log_start_offset=data.log_start_offset,
                )
                if partition.throttled_as_follower:
                    self._throttle(partition, len(data.records or b""))
        except FAILURES as error:
            logger.warning("following %s failed: %s", partition.id, error)
            self._rest(partition, str(error))
            if partition.log.offline is not None:  # until somebody sees to the disk
                self._resting[partition.id] = self._broker.loop.time() + _OFFLINE_S

    def _throttle(self, partition: Partition, size: int) -> None:
        """Let a replica that is not in sync yet wait, once it is ahead of its rate."""
        rate, now = self._broker.replicas.rate_as_follower, self._broker.loop.time()
        rate.spend(size, now)
        if rate.is_exceeded(now) and self._broker.broker_id not in partition.isr:
            self._resting[partition.id] = min(rate.until_s(), now + 1)

    def _rest(self, partition: Partition, why: str) -> None:
        logger.debug("not following %s for a while: %s", partition.id, why)
        self._resting[partition.id] = self._broker.loop.time() + _PATIENCE_S

    async def _go_back(self, partition: Partition, parted: EpochEnd) -> None:
        """Drop what the leader does not have."""
        log = partition.log
        keep = follower.truncation_offset(
            log.epochs, parted, start=log.log_start_offset, end=log.log_end_offset
        )
        logger.info(
            "%s: going back from %d to %d, where broker %d goes on",
            partition.id,
            log.log_end_offset,
            keep,
            self._leader,
        )
        partition.truncate_to(keep)
        await self._broker.note_truncation(partition)

    async def _start_over(self, partition: Partition) -> None:
        """The leader has nothing at our log's end: it begins later, or ends earlier."""
        start, end = await self._range(partition)
        if not self._stands_where_it_asked(partition):
            return  # others lead by now, perhaps this broker
        where = follower.restart(partition.log.log_end_offset, leader_start=start, leader_end=end)
        if where is None:
            self._rest(partition, "the leader says that it is out of range, and then that it is not")
            return
        if where.from_nothing:
            logger.info("%s: starting over at %d", partition.id, where.offset)
            partition.start_over_at(where.offset)
        else:
            partition.truncate_to(where.offset)
        await self._broker.note_truncation(partition)

    async def _range(self, partition: Partition) -> tuple[int, int]:
        """Where the leader's log begins and ends.

        Where it begins is asked last, and only of the leader that we know: it led all the while, then.
        """
        end = await self._ask_offset(partition, _LATEST, _ANY_REPLICA)
        return await self._ask_offset(partition, _EARLIEST, self._broker.broker_id), end

    async def _ask_offset(self, partition: Partition, timestamp: int, replica_id: int) -> int:
        if self._peer is None:
            raise PeerGone("the connection has ended")
        entry = ListOffsetsPartition(
            partition_index=partition.id.partition,
            current_leader_epoch=partition.leader_epoch,
            timestamp=timestamp,
        )
        topic = ListOffsetsTopic(name=partition.id.topic, partitions=[entry])
        request = ListOffsetsRequest(replica_id=replica_id, topics=[topic])
        response = await self._peer.ask(request, _LIST_OFFSETS_VERSION, timeout_s=_TIMEOUT_S)
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise NotLeader(f"broker {self._leader} does not say where {partition.id} begins and ends")
        return int(answer.offset)


def _forgotten(places: Iterable[tuple[bytes, int]]) -> list[ForgottenTopic]:
    """Partitions that the leader is to drop from the session, also of topics that are there no more."""
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in places:
        by_topic.setdefault(topic_id, []).append(partition)
    return [ForgottenTopic(topic_id=topic_id, partitions=each) for topic_id, each in by_topic.items()]


def _position(partition: Partition) -> Position:
    log = partition.log
    return follower.position(
        log.epochs, start=log.log_start_offset, end=log.log_end_offset, leader_epoch=partition.leader_epoch
    )
