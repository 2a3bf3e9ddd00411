"""A coordinator's place of work: a broker without sockets, a real log, a loop whose clock tests move."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace.broker.coordinators.groups import GroupShard
from headrace.broker.image import TopicImage
from headrace.broker.membership.lease import Lease
from headrace.broker.replicas.partition import Partition
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.znodes import PartitionState
from headrace.coordinators.group.classic import ClassicGroup
from headrace.coordinators.group.consumer_protocol import Heartbeat
from headrace.coordinators.group.decision import Join, Joined, Sync
from headrace.coordinators.group.offsets import Commit
from headrace.protocol.ids import TopicPartition
from headrace.storage.config import LogConfig
from headrace.storage.topics import OFFSETS_TOPIC
from support.groups import join_request, sync_request
from support.logs import open_test_log

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
        self.broker.lease.renew(Lease.now_s(), session_timeout_s=3600)
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
        return self.shard.write_and_wait(lambda machine, waiter, now_ms: machine.join(join, waiter, now_ms))

    def sync(self, sync: Sync) -> "asyncio.Future[Any]":
        return self.shard.write_and_wait(lambda machine, waiter, now_ms: machine.sync(sync, waiter, now_ms))

    def commit(self, commit: Commit) -> None:
        self.shard.write(lambda coordinator, now_ms: coordinator.commit(commit, now_ms))

    def beat(self, beat: Heartbeat) -> None:
        self.shard.write(lambda coordinator, now_ms: coordinator.consumer_heartbeat(beat, now_ms))

    def stable_member(self) -> str:
        joined: Joined = self.join(join_request()).result()
        self.sync(sync_request(joined.member_id, joined.generation, {joined.member_id: b"mine"}))
        return joined.member_id

    def group(self) -> ClassicGroup:
        group = self.shard.machine.groups["g"]
        assert isinstance(group, ClassicGroup)
        return group
