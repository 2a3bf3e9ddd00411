"""The coordinator of a partition, on a real log and a real event loop whose clock the tests move."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.config import BrokerConfig
from headrace.broker.group_shard import GroupShard, RecordsTooLarge
from headrace.broker.groups import OFFSETS_TOPIC
from headrace.broker.image import ClusterImage, TopicImage
from headrace.broker.partition import Partition
from headrace.broker.server import Broker
from headrace.coordination.znodes import PartitionState
from headrace.group.classic import ClassicGroup, State
from headrace.group.classic_protocol import Join, Sync
from headrace.group.consumer_protocol import Heartbeat
from headrace.group.coordinator import Commit, GroupCoordinator
from headrace.group.decision import Joined, Synced
from headrace.group.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    GroupError,
    NotCoordinator,
    UnknownMember,
)
from headrace.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from headrace.protocol.records import Record, encode_batch
from headrace.storage.config import LogConfig
from headrace.storage.topics import TopicPartition
from headrace.testing.groups import (
    beat_request,
    commit_request,
    join_request,
    sync_request,
)
from headrace.testing.logs import open_test_log, read_all

HERE, THERE = 1, 2  # brokers
STATE = PartitionState(
    topic=OFFSETS_TOPIC, partition=0, leader=HERE, leader_epoch=0, isr=[HERE], controller_epoch=1
)


class MovableLoop(asyncio.SelectorEventLoop):
    """An event loop that finds itself later than it is."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


class Office:
    """A broker that was never started: no sockets, no ZooKeeper, one partition of `__consumer_offsets`."""

    def __init__(self, directory: Path, loop: MovableLoop, replicas: Sequence[int] = (HERE,)) -> None:
        self.loop = loop
        self.broker = Broker(
            BrokerConfig.of({"broker.id": str(HERE), "group.initial.rebalance.delay.ms": "0"})
        )
        self.broker._loop = loop
        self.broker.image = ClusterImage("cluster")
        self.broker.image.put_topic(TopicImage("orders", b"orders".ljust(16), {0: [HERE]}, {}))
        config = LogConfig(compact=True, delete=False, max_message_bytes=20_000)
        self.log = open_test_log(directory / f"{OFFSETS_TOPIC}-0", config)
        self.partition = Partition(TopicPartition(OFFSETS_TOPIC, 0), b"offsets".ljust(16), self.log, HERE)
        self.broker.partitions[self.partition.id] = self.partition
        self.state = replace(STATE, isr=list(replicas))
        self.replicas = list(replicas)
        self.lead()

    def lead(self, **changes: Any) -> None:
        """The controller has decided something about the partition; first of all, that we lead it."""
        self.state = replace(self.state, version=self.state.version + 1, **changes)
        self.partition.become(self.state, self.replicas, 0)
        topic = TopicImage(OFFSETS_TOPIC, b"offsets".ljust(16), {0: self.replicas}, {0: self.state})
        self.broker.image.put_topic(topic)
        self.broker.groups.follow(topic)

    @property
    def shard(self) -> GroupShard:
        return self.broker.groups.shard("g")

    def load(self) -> None:
        """Let the coordinator read its log."""
        while self.broker.groups.is_loading:
            self.run()

    def run(self) -> None:
        """Let the loop do what it has to do now, and what comes of it."""
        for _ in range(3):
            self.loop.run_until_complete(asyncio.sleep(0))

    def pass_time(self, ms: int) -> None:
        """Let time pass for a loop that is awake."""
        for _ in range(ms // 500):
            self.loop.ahead_s += 0.5
            self.run()

    def stand_still(self, ms: int) -> None:
        """Let time pass of which the loop knows nothing until it is over."""
        self.loop.ahead_s += ms / 1000

    # -- requests ------------------------------------------------------------------------------

    def join(self, join: Join) -> "asyncio.Future[Any]":
        return self.shard.ask(lambda coordinator, waiter, now_ms: coordinator.join(join, waiter, now_ms))

    def sync(self, sync: Sync) -> "asyncio.Future[Any]":
        return self.shard.ask(lambda coordinator, waiter, now_ms: coordinator.sync(sync, waiter, now_ms))

    def commit(self, commit: Commit) -> None:
        self.shard.decide(lambda coordinator, now_ms: coordinator.commit(commit, now_ms))

    def beat(self, beat: Heartbeat) -> None:
        self.shard.decide(lambda coordinator, now_ms: coordinator.consumer_heartbeat(beat, now_ms))

    def stable_member(self) -> str:
        joined: Joined = self.join(join_request()).result()
        self.sync(sync_request(joined.member_id, joined.generation, {joined.member_id: b"mine"}))
        return joined.member_id

    def group(self) -> ClassicGroup:
        group = self.shard.coordinator.groups["g"]
        assert isinstance(group, ClassicGroup)
        return group


@pytest.fixture
def loop() -> Iterator[MovableLoop]:
    loop = MovableLoop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def open_office(tmp_path: Path, loop: MovableLoop) -> Iterator[Callable[..., Office]]:
    offices: list[Office] = []

    def open_one(*replicas: int) -> Office:
        for office in offices:
            office.broker.groups.stop()
            office.log.release()
        offices.append(Office(tmp_path, loop, replicas or (HERE,)))
        return offices[-1]

    yield open_one
    for office in offices:
        office.broker.groups.stop()
        office.log.release()
    loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def office(open_office: Callable[..., Office]) -> Office:
    return open_office()


def full_device(office: Office) -> None:
    """Every write to the log fails from now on, as on a full disk."""
    os.close(office.log.active.descriptor)
    office.log.active._descriptor = os.open("/dev/full", os.O_RDWR)


# -- writing and reading ---------------------------------------------------------------------------


def test_what_is_decided_is_in_the_log_before_it_is_said(office: Office) -> None:
    joined = office.join(join_request()).result()
    assert read_all(office.log) == []

    synced = office.sync(sync_request(joined.member_id, 1, {joined.member_id: b"mine"}))

    assert synced.result() == Synced("consumer", "range", b"mine")
    assert len(read_all(office.log)) == 1


def test_another_coordinator_reads_it(open_office: Callable[..., Office]) -> None:
    member_id = open_office().stable_member()

    again = open_office()
    with pytest.raises(CoordinatorLoading):
        _ = again.shard
    again.load()

    answer = again.sync(sync_request(member_id, 1)).result()
    assert answer.assignment == b"mine"


def test_members_are_removed_by_the_clock(office: Office) -> None:
    office.stable_member()

    office.pass_time(9_500)
    assert office.group().state is State.STABLE
    office.pass_time(1_000)

    assert office.group().state is State.EMPTY


def test_members_of_a_log_that_was_read_are_removed_by_the_clock(open_office: Callable[..., Office]) -> None:
    open_office().stable_member()
    again = open_office()
    again.load()

    again.pass_time(10_500)

    assert again.group().state is State.EMPTY


def test_a_client_that_has_gone_is_not_answered(office: Office) -> None:
    member_id = office.stable_member()
    gone = office.join(join_request(asks_for_id=False))
    gone.cancel()

    again = office.join(join_request(member_id))

    assert isinstance(again.result(), Joined)


# -- a broker that stood still ---------------------------------------------------------------------


def test_members_that_a_broker_could_not_hear_have_a_second_to_be_heard(office: Office) -> None:
    member_id = office.stable_member()

    office.stand_still(60_000)
    office.run()
    assert office.group().state is State.STABLE
    office.shard.coordinator.heartbeat("g", member_id, None, 1, office.shard.now_ms)
    office.pass_time(9_500)

    assert office.group().state is State.STABLE


def test_members_that_are_silent_after_that_are_removed(office: Office) -> None:
    office.stable_member()

    office.stand_still(60_000)
    office.run()
    office.pass_time(1_000)

    assert office.group().state is State.EMPTY


# -- writes that fail ------------------------------------------------------------------------------


def test_what_too_few_replicas_could_not_keep_is_refused_before_anything_changes(office: Office) -> None:
    first = office.stable_member()
    second = office.join(join_request())
    office.join(join_request(first))
    waiting = office.sync(sync_request(second.result().member_id, 2))
    office.partition.min_insync_replicas, office.partition.replicas = 2, [HERE, THERE]

    with pytest.raises(CoordinatorNotAvailable):
        office.sync(sync_request(first, 2, {}))

    assert not waiting.done()
    office.partition.min_insync_replicas = 1
    office.sync(sync_request(first, 2, {}))
    assert isinstance(waiting.result(), Synced)


def test_a_coordinator_stays_while_too_few_replicas_are_in_sync(office: Office) -> None:
    first = office.stable_member()
    joining = office.join(join_request())
    before = office.shard
    office.partition.min_insync_replicas, office.partition.replicas = 2, [HERE, THERE]
    with pytest.raises(CoordinatorNotAvailable):
        office.commit(commit_request([("orders", 0, 5)], first, 1))
    office.partition.min_insync_replicas = 1

    assert office.shard is before
    assert office.shard.coordinator.offsets.of("g") == {}
    office.commit(commit_request([("orders", 0, 6)], first, 1))
    assert isinstance(office.join(join_request(first)).result(), Joined)
    assert isinstance(joining.result(), Joined)


def test_a_disk_that_fails_ends_the_coordinator(office: Office) -> None:
    first = office.stable_member()
    joining = office.join(join_request())
    full_device(office)

    with pytest.raises(NotCoordinator):
        office.commit(commit_request([("orders", 0, 5)], first, 1))

    assert isinstance(joining.result(), NotCoordinator)
    with pytest.raises(NotCoordinator):
        _ = office.shard


def test_a_deadline_that_cannot_be_written_is_kept_by_the_coordinator_that_comes_after(
    office: Office,
) -> None:
    office.stable_member()
    office.partition.min_insync_replicas, office.partition.replicas = 2, [HERE, THERE]
    office.pass_time(10_500)
    office.partition.min_insync_replicas = 1
    office.load()
    assert office.group().state is State.STABLE

    office.pass_time(10_500)

    assert office.group().state is State.EMPTY


def test_what_is_too_large_to_be_remembered_is_refused_and_others_go_on(office: Office) -> None:
    member_id = office.stable_member()
    large = join_request(group_id="large", protocols=(("range", bytes(30_000)),))
    joined = office.join(large).result()
    coordinator = office.shard.coordinator

    with pytest.raises(RecordsTooLarge):
        office.sync(sync_request(joined.member_id, 1, group_id="large"))

    assert office.shard.coordinator is coordinator
    office.shard.coordinator.heartbeat("g", member_id, None, 1, office.shard.now_ms)
    assert office.group().state is State.STABLE


def test_what_is_due_for_others_happens_even_if_something_is_too_large(office: Office) -> None:
    """Two classic members of a consumer group, each of which fits in a record, and both together do not."""
    office.beat(beat_request("c", 0))
    large = ConsumerProtocolSubscription(topics=["orders"], user_data=bytes(12_000))
    protocols = (("range", encode_subscription(large, 0)),)
    for _ in range(2):
        office.join(join_request(protocols=protocols, session_timeout_ms=600_000)).result()
    office.beat(beat_request("c", 0, group_id="other"))

    office.pass_time(46_000)

    assert "c" in office.shard.coordinator.groups["g"].members
    assert not office.shard.coordinator.groups["other"].members


# -- many offsets at once --------------------------------------------------------------------------


def commit_many(office: Office, count: int) -> None:
    for start in range(0, count, 50):
        office.commit(commit_request([("orders", number, 1) for number in range(start, start + 50)]))


def test_any_number_of_offsets_can_expire_at_once(office: Office) -> None:
    commit_many(office, 2_000)
    assert len(office.shard.coordinator.offsets.of("g")) == 2_000

    office.broker.groups.expire_offsets()

    assert office.shard.coordinator.groups == {}


def test_any_number_of_offsets_can_go_with_their_topic(office: Office) -> None:
    commit_many(office, 2_000)

    office.broker.groups.topic_is_gone("orders")

    assert office.shard.coordinator.offsets.of("g") == {}


def test_offsets_of_a_topic_that_goes_while_they_are_read_go_with_it(
    open_office: Callable[..., Office],
) -> None:
    open_office().commit(commit_request([("orders", 0, 1), ("people", 0, 1)]))
    again = open_office()

    again.broker.groups.topic_is_gone("orders")
    again.load()

    assert set(again.shard.coordinator.offsets.of("g")) == {("people", 0)}


def test_a_record_that_is_too_large_alone_does_not_keep_others_from_being_forgotten(office: Office) -> None:
    """Names may be longer than anybody would make them, and parts are halved until they fit."""
    for number in range(60):
        office.commit(commit_request([("orders", 0, 1)], group_id="g" * 1_000 + str(number)))

    office.broker.groups.topic_is_gone("orders")

    assert all(not office.shard.coordinator.offsets.of(group) for group in office.shard.coordinator.groups)


# -- coming and going ------------------------------------------------------------------------------


def test_whoever_waits_is_told_when_another_broker_leads(office: Office) -> None:
    office.stable_member()
    joining = office.join(join_request())

    office.lead(leader=THERE, leader_epoch=1)

    assert isinstance(joining.result(), NotCoordinator)
    with pytest.raises(NotCoordinator):
        _ = office.shard


def test_a_coordinator_begins_anew_when_its_broker_leads_again(office: Office) -> None:
    member_id = office.stable_member()
    joining = office.join(join_request())

    office.lead(leader_epoch=1)

    assert isinstance(joining.result(), NotCoordinator)
    with pytest.raises(CoordinatorLoading):
        _ = office.shard
    office.load()
    office.shard.coordinator.heartbeat("g", member_id, None, 1, office.shard.now_ms)


def test_a_coordinator_goes_on_when_nothing_changes_but_who_is_in_sync(office: Office) -> None:
    office.stable_member()
    before = office.shard

    office.lead()

    assert office.shard is before


def test_nobody_is_removed_by_a_coordinator_that_has_stopped(office: Office) -> None:
    office.stable_member()
    stopped = office.shard
    office.lead(leader=THERE, leader_epoch=1)
    written = office.log.log_end_offset

    office.pass_time(20_000)

    assert office.log.log_end_offset == written
    with pytest.raises(CoordinatorNotAvailable):
        stopped.decide(GroupCoordinator.expire_offsets)


def test_a_coordinator_may_stop_while_it_reads(open_office: Callable[..., Office]) -> None:
    open_office().stable_member()
    again = open_office()
    with pytest.raises(CoordinatorLoading):
        _ = again.shard

    again.lead(leader=THERE, leader_epoch=1)
    again.run()

    with pytest.raises(NotCoordinator):
        _ = again.shard


def test_a_log_that_cannot_be_read_is_said_so(
    open_office: Callable[..., Office], caplog: pytest.LogCaptureFixture
) -> None:
    first = open_office()
    first.log.append_internal(encode_batch([Record(b"\x00\x02\x00", b"", timestamp=1)]), leader_epoch=0)
    again = open_office()

    again.load()

    assert "cannot be read" in caplog.text
    with pytest.raises(CoordinatorNotAvailable, match="cannot be read"):
        _ = again.shard


def test_there_is_no_coordinator_before_there_is_a_topic_for_it(office: Office) -> None:
    office.broker.image.remove_topic(OFFSETS_TOPIC)

    with pytest.raises(CoordinatorNotAvailable):
        _ = office.shard


# -- replicas --------------------------------------------------------------------------------------


def test_whoever_waits_is_answered_when_the_followers_have_it(open_office: Callable[..., Office]) -> None:
    office = open_office(HERE, THERE)
    joined = office.join(join_request()).result()

    async def sync() -> "asyncio.Future[Any]":
        return office.sync(sync_request(joined.member_id, 1, {joined.member_id: b"mine"}))

    waiting = office.loop.run_until_complete(sync())
    assert not waiting.done()
    office.partition.follower_fetches(THERE, office.log.log_end_offset, broker_epoch=1, now_ms=0)
    office.run()

    assert waiting.result().assignment == b"mine"


def test_whoever_waits_for_followers_is_told_when_another_broker_leads(
    open_office: Callable[..., Office],
) -> None:
    office = open_office(HERE, THERE)
    joined = office.join(join_request()).result()

    async def sync() -> "asyncio.Future[Any]":
        return office.sync(sync_request(joined.member_id, 1, {joined.member_id: b"mine"}))

    waiting = office.loop.run_until_complete(sync())
    office.lead(leader=THERE, leader_epoch=1)
    office.run()

    answer = waiting.result()
    assert isinstance(answer, GroupError)
    assert not isinstance(answer, UnknownMember)
