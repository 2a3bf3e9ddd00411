"""The transaction coordinator on a real log: markers follow the committed outcome, and survive a failover."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.image import TopicImage
from headrace.broker.membership.lease import Lease
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.pending_verification import Verification
from headrace.broker.requests.dispatch import load_handlers
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.znodes import BrokerRegistration, PartitionState
from headrace.coordinators.decision import Producer
from headrace.coordinators.transaction.coordinator import EndTransaction, InitProducerId
from headrace.coordinators.transaction.state import TransactionState
from headrace.protocol.ids import TopicPartition
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.topics import TRANSACTIONS_TOPIC
from support.logs import open_test_log
from support.records import make_batch
from unit.broker.group_office import HERE, THERE, MovableLoop

ORDERS = TopicPartition("orders", 0)
STATES = TopicPartition(TRANSACTIONS_TOPIC, 0)


class Desk:
    """A broker that was never started: one partition of `__transaction_state`, and one of records."""

    def __init__(self, root: Path, loop: MovableLoop, replicas: tuple[int, ...]) -> None:
        load_handlers()
        self.loop = loop
        self.broker = Broker(BrokerConfig.of({"broker.id": str(HERE)}))
        self.broker._loop = loop
        self.broker.lease.renew(Lease.now_s(), session_timeout_s=3600)
        registration: Any = BrokerRegistration.__new__(BrokerRegistration)
        self.broker.image.brokers = {HERE: registration, THERE: registration}
        self.logs: list[Log] = []
        self.orders = self._lead(ORDERS, root, (HERE,))
        self.states = self._lead(STATES, root, replicas)

    def _lead(self, id_: TopicPartition, root: Path, replicas: tuple[int, ...], epoch: int = 0) -> Partition:
        state = PartitionState(
            topic=id_.topic,
            partition=0,
            leader=HERE,
            leader_epoch=epoch,
            isr=list(replicas),
            controller_epoch=1,
        )
        log = open_test_log(root / str(id_), LogConfig())
        self.logs.append(log)
        partition = Partition(id_, id_.topic.encode().ljust(16)[:16], log, HERE)
        self.broker.partitions[id_] = partition
        partition.become(replace(state, version=1), list(replicas), 0)
        topic = TopicImage(id_.topic, partition.topic_id, {0: list(replicas)}, {0: state})
        self.broker.image.put_topic(topic)
        if id_ == STATES:
            self.broker.transactions.follow(topic)
        return partition

    def state(self) -> TransactionState:
        return self.broker.transactions.shard("t").machine.transactions["t"].state

    def run(self, turns: int = 40) -> None:
        async def wait() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.loop.run_until_complete(wait())

    def pass_time(self, seconds: float) -> None:
        """Let time pass in steps that are no stall."""
        for _ in range(int(seconds * 2)):
            self.loop.ahead_s += 0.5
            self.run()

    def decide(self, decide: Callable[[Any, int], Any]) -> "asyncio.Future[Any]":
        async def write() -> "asyncio.Future[Any]":
            return self.broker.transactions.shard("t").write(decide)

        return self.loop.run_until_complete(write())

    def begin(self) -> Producer:
        """A producer with a record in an open transaction."""
        request = InitProducerId("t", 10_000)
        init = self.decide(lambda machine, now_ms: machine.init_producer_id(request, now_ms, 9))
        self.replicate()
        producer: Producer = init.result()
        added = frozenset([ORDERS])
        self.decide(lambda machine, now_ms: machine.add_partitions("t", producer, added, 2, now_ms))
        self.replicate()
        verification = Verification(producer, self.orders.leader_epoch)
        self.orders.verifications[producer.producer_id] = verification
        batch = make_batch(
            1,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
        self.orders.append(batch, acks_all=False, verification=verification)
        return producer

    def end(self, producer: Producer, *, commit: bool = True) -> "asyncio.Future[Any]":
        request = EndTransaction("t", producer, commit, 2)
        return self.decide(lambda machine, now_ms: machine.end(request, now_ms))

    def replicate(self) -> None:
        """Let the follower, if there is one, have everything."""
        leadership = self.states.leadership
        assert leadership is not None
        if THERE in leadership.followers:
            end = self.states.log.log_end_offset
            self.states.follower_fetches(THERE, end, broker_epoch=-1, now_ms=0)
        self.run()

    def has_marker(self) -> bool:
        return not self.orders.log.producers.is_in_transaction(9, 0)

    def close(self) -> None:
        self.broker.stop_coordinators()
        for log in self.logs:
            log.release()


@pytest.fixture
def open_desk(tmp_path: Path, movable_loop: MovableLoop) -> Iterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def open_one(*replicas: int) -> Desk:
        for each in desks:
            each.close()
        desks.append(Desk(tmp_path, movable_loop, replicas or (HERE,)))
        return desks[-1]

    yield open_one
    desks[-1].close()
    movable_loop.run_until_complete(asyncio.sleep(0))


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_with_its_markers(open_desk: Callable[..., Desk], commit: bool) -> None:
    desk = open_desk()
    producer = desk.begin()
    assert desk.orders.log.last_stable_offset(desk.orders.high_watermark) == 0

    following = desk.end(producer, commit=commit)
    desk.run()

    assert following.result() == Producer(9, 1)
    assert desk.has_marker()
    assert desk.state() is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert desk.orders.log.last_stable_offset(desk.orders.high_watermark) == 2


def test_no_marker_is_written_before_the_outcome_is_committed(open_desk: Callable[..., Desk]) -> None:
    """The next coordinator might not have the record, and decide otherwise."""
    desk = open_desk(HERE, THERE)
    reply = desk.end(desk.begin())
    desk.run()

    assert desk.state() is TransactionState.PREPARE_COMMIT
    assert not reply.done()
    assert not desk.has_marker()
    desk.replicate()
    desk.replicate()
    assert reply.done()
    assert desk.has_marker()
    assert desk.state() is TransactionState.COMPLETE_COMMIT


def test_the_next_coordinator_writes_the_markers_that_are_missing(open_desk: Callable[..., Desk]) -> None:
    """It finds PREPARE_COMMIT in the log, without COMPLETE_COMMIT."""
    desk = open_desk()
    producer = desk.begin()
    desk.broker.transactions.markers.stop()  # it dies before the markers are sent
    desk.end(producer)
    desk.run()
    assert not desk.has_marker()

    successor = open_desk()
    while successor.broker.transactions.is_loading:
        successor.run()
    successor.run()

    assert successor.has_marker()
    assert successor.state() is TransactionState.COMPLETE_COMMIT


def test_a_transaction_is_aborted_at_its_timeout(open_desk: Callable[..., Desk]) -> None:
    desk = open_desk()
    desk.begin()
    desk.pass_time(9)
    assert desk.state() is TransactionState.ONGOING
    desk.pass_time(3)

    assert desk.has_marker()
    assert desk.state() is TransactionState.COMPLETE_ABORT


def test_unused_ids_are_deleted_from_the_log(open_desk: Callable[..., Desk]) -> None:
    desk = open_desk()
    desk.end(desk.begin())
    desk.run()
    machine = desk.broker.transactions.shard("t").machine
    machine.limits = machine.limits._replace(id_expiration_ms=0)

    desk.loop.run_until_complete(desk.broker.transactions.expire_ids())

    assert desk.broker.transactions.shard("t").machine.transactions == {}
    successor = open_desk()
    while successor.broker.transactions.is_loading:
        successor.run()
    assert successor.broker.transactions.shard("t").machine.transactions == {}
