"""Followers: one task for each leader fetches all the partitions that this broker follows there.

A follower's Fetch carries its log end offset and the leader epoch of its last record. If the logs diverge,
the leader answers with the diverging epoch; the follower truncates and fetches again. This one path makes any
log equal to its leader's: an empty one, one that is behind or ahead, and one that has diverged.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from headrace.broker.errors import NotLeader
from headrace.broker.image import ClusterImage
from headrace.broker.peers.peer import Peer
from headrace.broker.replicas.partition import Partition
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.translate import FAILURES
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone, UnsupportedByPeer
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
from headrace.replication.rate import Rate

VERSIONS = range(15, 18)  # their requests and responses mean the same
_TIMEOUT_S = 30.0
_FIRST_RETRY_S, _LAST_RETRY_S = 0.05, 1.0
_SUSPICION_S = 2.0  # after which the controller has announced any new leader
_OFFLINE_S = 30.0
_REFUSALS = 10  # in a row, after which the reason is logged: a new leader is known by then
_BACKOFF_S = 0.5  # for a partition that the leader refuses: an UpdateMetadata is probably on its way
_ERROR_NAMES = {each.value: each.name for each in ErrorCode}
_EARLIEST, _LATEST, _ANY_REPLICA = -2, -1, -2
_LIST_OFFSETS_VERSIONS = range(4, 8)
_FETCH_SETTINGS = (
    "replica.fetch.wait.max.ms",
    "replica.fetch.min.bytes",
    "replica.fetch.response.max.bytes",
    "replica.fetch.max.bytes",
)

logger = logging.getLogger(__name__)


class _SentPosition(NamedTuple):
    """What the leader was last told about a partition in the fetch session."""

    position: Position
    log_start_offset: int
    topic_id: bytes


class FollowerContext(NamedTuple):
    """What fetchers use of their broker."""

    broker_id: int
    image: ClusterImage
    config: Callable[[], BrokerConfig]
    broker_epoch: Callable[[], int]
    connect_to: Callable[[int], Awaitable[Peer]]
    note_truncation: Callable[[Partition], Awaitable[None]]
    """Called after a log was truncated, before anything else is appended to it."""
    rate: Rate
    """Of replicas that are throttled as followers."""


class Fetchers:
    """The fetchers of a broker, by leader."""

    def __init__(self, context: FollowerContext) -> None:
        self._context = context
        self._by_leader: dict[int, Fetcher] = {}
        self._leaders: dict[TopicPartition, int] = {}

    def follow(self, partition: Partition) -> None:
        """Fetch the partition from its current leader, or not at all if this broker leads it."""
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
            fetcher = self._by_leader[leader] = Fetcher(self._context, leader)
        fetcher.add(partition)

    def forget(self, id_: TopicPartition) -> None:
        """Stop fetching a partition that this broker no longer has."""
        leader = self._leaders.pop(id_, -1)
        if leader != -1:
            self._by_leader[leader].remove(id_)

    def leader_is_back(self, broker_id: int) -> None:
        """Reconnect to a leader that has restarted, perhaps at another address."""
        fetcher = self._by_leader.get(broker_id)
        if fetcher is not None:
            fetcher.interrupt()

    def stop(self) -> None:
        for fetcher in self._by_leader.values():
            fetcher.stop()
        self._by_leader.clear()
        self._leaders.clear()


class Fetcher:
    """Fetches from one leader, in one fetch session, all partitions that this broker follows there."""

    def __init__(self, context: FollowerContext, leader: int) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._leader = leader
        self._partitions: dict[TopicPartition, Partition] = {}
        self._backoff_until: dict[
            TopicPartition, float
        ] = {}  # partitions that are not fetched before this time
        self._refusals: dict[TopicPartition, int] = {}  # in a row
        self._peer: Peer | None = None
        self._session_id = self._session_epoch = 0
        self._sent: dict[TopicPartition, _SentPosition] = {}
        self._changed = asyncio.Event()
        self._interrupting: asyncio.TimerHandle | None = None
        self._hung_up = False  # this broker has closed the connection
        self._suspicion: asyncio.TimerHandle | None = None
        self._task = self._loop.create_task(self._run())

    def add(self, partition: Partition) -> None:
        self._partitions[partition.id] = partition
        self._backoff_until.pop(partition.id, None)
        self._sent.pop(partition.id, None)
        self._changed.set()
        self._interrupt_soon()

    def remove(self, id_: TopicPartition) -> None:
        self._partitions.pop(id_, None)
        self._backoff_until.pop(id_, None)
        self._refusals.pop(id_, None)

    def _interrupt_soon(self) -> None:
        """Interrupt a long poll, so that a new partition does not wait for it."""
        if self._interrupting is None and self._peer is not None:
            self._interrupting = self._loop.call_later(0.005, self.interrupt)

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
                self._peer = await self._context.connect_to(self._leader)
                self._trust()
                self._hung_up = False
                self._begin_session()
                while self._partitions:
                    await self._fetch(self._peer)
                    delay = 0.0
            except UnsupportedByPeer:  # whoever has made the connection has logged it
                await asyncio.sleep(_LAST_RETRY_S)
            except PeerGone as error:
                logger.debug("fetching from broker %d: %s", self._leader, error)
                if self._peer is not None and not self._hung_up:
                    self._suspect()
                # The first retry is immediate, to find out quickly whether the leader is gone. After an
                # interruption for new partitions, more of them may follow.
                await asyncio.sleep(max(delay, _FIRST_RETRY_S) if self._hung_up else delay)
                delay = min(max(2 * delay, _FIRST_RETRY_S), _LAST_RETRY_S)
            except Exception:
                logger.exception("fetching from broker %d failed and is retried", self._leader)
                await asyncio.sleep(_LAST_RETRY_S)
            finally:
                if self._peer is not None:
                    self._peer.close()
                self._peer = None

    def _suspect(self) -> None:
        """Leave the leader out of Metadata until it accepts a connection again, which is tried at once.

        The leader has closed the connection. If its process has ended, there is a new leader soon. A client
        that gets the old one from Metadata retries after a second or more, and without a leader at once.
        """
        if self._suspicion is None:
            self._context.image.suspect(self._leader)
            self._suspicion = self._loop.call_later(_SUSPICION_S, self._trust)

    def _trust(self) -> None:
        if self._suspicion is not None:
            self._suspicion.cancel()
            self._suspicion = None
            self._context.image.trust(self._leader)

    async def _fetch(self, peer: Peer) -> None:
        await self._wait_for_backoff()
        request = self._request()
        response: FetchResponse = await peer.ask(request, VERSIONS, timeout_s=_TIMEOUT_S)
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
                if partition is not None and self._is_current(partition):
                    await self._handle(partition, data)
        if not response.session_id:
            self._begin_session()  # the leader has no room for a session: name every partition again

    def _is_current(self, partition: Partition) -> bool:
        """Return whether a response is still valid: log and leader are those of the request."""
        sent = self._sent.get(partition.id)
        return sent is not None and sent.position == _position(partition)

    async def _wait_for_backoff(self) -> None:
        """Sleep if no partition may be fetched yet."""
        now = self._loop.time()
        waits = [self._backoff_until.get(id_, 0.0) - now for id_ in self._partitions]
        if waits and min(waits) > 0:
            await asyncio.sleep(min(waits))

    def _begin_session(self) -> None:
        self._session_id = self._session_epoch = 0
        self._sent.clear()

    def _request(self) -> FetchRequest:
        now = self._loop.time()
        wanted = {
            id_: _SentPosition(_position(partition), partition.log.log_start_offset, partition.topic_id)
            for id_, partition in self._partitions.items()
            if self._backoff_until.get(id_, 0) <= now and not partition.is_repaired_first
        }
        news = {id_: each for id_, each in wanted.items() if self._sent.get(id_) != each}
        forgotten = [
            (each.topic_id, id_.partition)
            for id_, each in self._sent.items()
            if id_ not in wanted or wanted[id_].topic_id != each.topic_id
        ]
        self._sent = wanted
        config = self._context.config()
        wait_ms, min_bytes, max_bytes, each_bytes = map(config.integer, _FETCH_SETTINGS)
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._context.broker_id, replica_epoch=self._context.broker_epoch()
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

    def _topics(self, news: dict[TopicPartition, _SentPosition], each_bytes: int) -> list[FetchTopic]:
        by_topic: dict[bytes, list[FetchPartition]] = {}
        for id_, sent in news.items():
            by_topic.setdefault(self._partitions[id_].topic_id, []).append(
                FetchPartition(
                    partition=id_.partition,
                    current_leader_epoch=sent.position.leader_epoch,
                    fetch_offset=sent.position.offset,
                    last_fetched_epoch=sent.position.last_epoch,
                    log_start_offset=sent.log_start_offset,
                    partition_max_bytes=each_bytes,
                )
            )
        return [FetchTopic(topic_id=topic_id, partitions=each) for topic_id, each in by_topic.items()]

    async def _handle(self, partition: Partition, data: PartitionData) -> None:
        try:
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._start_over(partition)
            elif data.error_code != ErrorCode.NONE:
                name = _ERROR_NAMES.get(data.error_code, data.error_code)
                self._back_off(partition, f"it answers error {name}")
            elif data.diverging_epoch.epoch >= 0:
                diverging = data.diverging_epoch
                await self._truncate(partition, EpochEnd(diverging.epoch, diverging.end_offset))
            else:
                partition.append_as_follower(
                    data.records or b"",
                    high_watermark=data.high_watermark,
                    log_start_offset=data.log_start_offset,
                )
                self._refusals.pop(partition.id, None)
                if partition.throttled_as_follower:
                    self._throttle(partition, len(data.records or b""))
        except FAILURES as error:
            self._back_off(partition, f"its response could not be appended: {error}", logged_after=1)
            if partition.log.offline is not None:  # until an operator replaces the disk
                self._backoff_until[partition.id] = self._loop.time() + _OFFLINE_S

    def _throttle(self, partition: Partition, size: int) -> None:
        """Back off from a replica that is not in the ISR while the throttled rate is exceeded."""
        rate, now = self._context.rate, self._loop.time()
        rate.spend(size, now)
        if rate.is_exceeded(now) and self._context.broker_id not in partition.isr:
            self._backoff_until[partition.id] = min(rate.until_s(), now + 1)

    def _back_off(self, partition: Partition, why: str, *, logged_after: int = _REFUSALS) -> None:
        """Leave the partition out of the next requests; log the reason of repeated refusals once."""
        refusals = self._refusals[partition.id] = self._refusals.get(partition.id, 0) + 1
        level = logging.WARNING if refusals == logged_after else logging.DEBUG
        logger.log(level, "%s cannot be fetched from broker %d: %s", partition.id, self._leader, why)
        self._backoff_until[partition.id] = self._loop.time() + _BACKOFF_S

    async def _truncate(self, partition: Partition, diverging: EpochEnd) -> None:
        """Truncate the log to where it diverges from the leader's."""
        log = partition.log
        keep = follower.truncation_offset(
            log.epochs, diverging, start=log.log_start_offset, end=log.log_end_offset
        )
        logger.info(
            "%s: truncating from offset %d to %d, where the log of broker %d diverges",
            partition.id,
            log.log_end_offset,
            keep,
            self._leader,
        )
        partition.truncate_to(keep)
        await self._context.note_truncation(partition)

    async def _start_over(self, partition: Partition) -> None:
        """Restart at an offset that the leader has: its log starts after ours ends, or ends before."""
        start, end = await self._range(partition)
        if not self._is_current(partition):
            return  # there is a new leader, perhaps this broker
        where = follower.restart(partition.log.log_end_offset, leader_start=start, leader_end=end)
        if where is None:
            await self._drop_impossible_epochs(partition)
            return
        if where.from_nothing:
            logger.info("%s: restarting with an empty log at offset %d", partition.id, where.offset)
            partition.start_over_at(where.offset)
        else:
            partition.truncate_to(where.offset)
        await self._context.note_truncation(partition)

    async def _drop_impossible_epochs(self, partition: Partition) -> None:
        """Truncate the log where its epochs exceed the current one: the leader does not know them.

        The next fetch names the last epoch before them. If the two logs differ there as well, the leader
        answers with a diverging epoch.
        """
        log = partition.log
        keep = follower.end_of_possible_epochs(
            log.epochs, leader_epoch=partition.leader_epoch, end=log.log_end_offset
        )
        if keep is None:
            self._back_off(partition, "it answers OFFSET_OUT_OF_RANGE for an offset that it has")
            return
        logger.warning(
            "%s: the log names leader epoch %d from offset %d on, the current one is %d: truncating from "
            "offset %d to there, and fetching again from broker %d",
            partition.id,
            log.epochs.at(keep),
            keep,
            partition.leader_epoch,
            log.log_end_offset,
            self._leader,
        )
        partition.truncate_to(keep)
        await self._context.note_truncation(partition)

    async def _range(self, partition: Partition) -> tuple[int, int]:
        """Return log start offset and log end offset of the leader.

        The start is requested last and as a replica, which a former leader refuses: both are of one leader.
        """
        end = await self._ask_offset(partition, _LATEST, _ANY_REPLICA)
        return await self._ask_offset(partition, _EARLIEST, self._context.broker_id), end

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
        response = await self._peer.ask(request, _LIST_OFFSETS_VERSIONS, timeout_s=_TIMEOUT_S)
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise NotLeader(f"broker {self._leader} refuses ListOffsets for {partition.id}")
        return int(answer.offset)


def _forgotten(partitions: Iterable[tuple[bytes, int]]) -> list[ForgottenTopic]:
    """Return the partitions that the leader removes from the session, including those of deleted topics."""
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in partitions:
        by_topic.setdefault(topic_id, []).append(partition)
    return [ForgottenTopic(topic_id=topic_id, partitions=each) for topic_id, each in by_topic.items()]


def _position(partition: Partition) -> Position:
    log = partition.log
    return follower.position(
        log.epochs, start=log.log_start_offset, end=log.log_end_offset, leader_epoch=partition.leader_epoch
    )
