"""A cluster of any size without I/O: one real controller, and brokers that only acknowledge.

The controller's own code runs: `ClusterView` and `ControllerElection` read and watch brokers, `Controller`
elects leaders, writes transactions and updates brokers. ZooKeeper is a tree in memory, and a broker is a
connection that encodes each request as for the network and counts it. `bench/scale` measures time and memory,
and `tests/unit/replication/controller/test_capacity.py` asserts the counts.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from capacity.session import CountedTree, CountingSession
from headrace.broker.membership.cluster import ClusterView
from headrace.broker.membership.controller_election import ControllerElection
from headrace.broker.slices import at_once
from headrace.coordination.session import Create, Delete
from headrace.coordination.znodes import BrokerRegistration, TopicAssignment
from headrace.protocol.between_brokers.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from headrace.protocol.ids import TopicPartition
from headrace.protocol.locations import Location, Locations
from headrace.protocol.message import Message
from headrace.protocol.peers import Link
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.replication.controller.model import Member, TopicRules
from headrace.replication.controller.placement import MAX_PARTITIONS, spread
from headrace.replication.controller.runner import Controller
from headrace.replication.controller.store import first_state
from headrace.replication.controller.transactions import state_of
from headrace.security.listeners import Endpoint

REPLICAS: Final = 3
RULES: Final = TopicRules(min_insync_replicas=2, unclean_allowed=False)
RACKS: Final = ("a", "b", "c")
BROKERS_PER_NODE: Final = 3
LONG: Final = 3600.0
_FIRST_SESSION: Final = 1000  # the session of broker n is this plus n


class Size(NamedTuple):
    """The size of a cluster; brokers are spread over three racks, in nodes of three."""

    brokers: int
    partitions: int
    per_topic: int

    @property
    def topics(self) -> int:
        return self.partitions // self.per_topic

    def rack_of(self, broker_id: int) -> str:
        return RACKS[(broker_id - 1) // BROKERS_PER_NODE % len(RACKS)]

    def node_of(self, broker_id: int) -> str:
        return f"node-{(broker_id - 1) // BROKERS_PER_NODE}"

    def in_rack(self, rack: str) -> list[int]:
        return [each for each in range(1, self.brokers + 1) if self.rack_of(each) == rack]


@dataclass(slots=True)
class Traffic:
    """What the controller has sent to one broker, or to all of them."""

    updates: int = 0
    update_bytes: int = 0
    largest_update: int = 0
    states: int = 0  # of partitions in updates
    surveys: int = 0
    survey_bytes: int = 0

    def clear(self) -> None:
        for each in fields(self):
            setattr(self, each.name, 0)

    def add(self, other: "Traffic") -> None:
        self.updates += other.updates
        self.update_bytes += other.update_bytes
        self.largest_update = max(self.largest_update, other.largest_update)
        self.states += other.states
        self.surveys += other.surveys
        self.survey_bytes += other.survey_bytes


class StateCount:
    """Counts the partition states of requests, once for a request that many brokers get."""

    def __init__(self) -> None:
        self._known: deque[tuple[object, int]] = deque(maxlen=4)

    def __call__(self, states: Sequence[UpdateMetadataTopicState]) -> int:
        for known, count in self._known:
            if known is states:
                return count
        self._known.append((states, sum(len(topic.partition_states) for topic in states)))
        return self._known[-1][1]


class CountingLink:
    """A connection to a broker that has equal logs everywhere and acknowledges every update."""

    def __init__(self, traffic: Traffic, count: "StateCount") -> None:
        self._traffic = traffic
        self._count = count
        self._closed = asyncio.get_running_loop().create_future()

    async def ask(self, request: Message, versions: range, *, timeout_s: float | None = None) -> Any:
        del timeout_s
        size = sum(map(len, request.encode(versions[-1])))
        await asyncio.sleep(0)
        if isinstance(request, UpdateMetadataRequest):
            self._traffic.updates += 1
            self._traffic.update_bytes += size
            self._traffic.largest_update = max(self._traffic.largest_update, size)
            self._traffic.states += self._count(request.topic_states)
            return UpdateMetadataResponse()
        assert isinstance(request, ListOffsetsRequest), request
        self._traffic.surveys += 1
        self._traffic.survey_bytes += size
        return _log_ends(request)

    def common_versions(self, key: int, versions: range) -> range:
        del key
        return versions

    async def closed(self) -> None:
        await asyncio.shield(self._closed)

    def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)


def _log_ends(request: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, offset=1000, leader_epoch=0
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@dataclass(slots=True)
class Broker:
    """The part of a broker that takes part in elections of the controller."""

    broker_id: int
    session: CountingSession
    view: ClusterView
    election: ControllerElection = field(init=False)

    @property
    def controller(self) -> Controller:
        assert self.election.controller is not None, f"broker {self.broker_id} is not the controller"
        return self.election.controller


class SimulatedCluster:
    """The znodes of a cluster, and those of its brokers that are needed: the others only acknowledge."""

    def __init__(self, size: Size) -> None:
        self.size: Final = size
        self.zookeeper: Final = CountedTree()
        self.traffic: Final = {each: Traffic() for each in range(1, size.brokers + 1)}
        self._brokers: list[Broker] = []
        self._handled = asyncio.Event()
        self._count = StateCount()
        self._register(range(1, size.brokers + 1))
        self._create_topics()

    # -- znodes --------------------------------------------------------------------------------

    def _register(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            found = BrokerRegistration(
                broker_id=broker_id,
                endpoints=[Endpoint("PLAINTEXT", f"broker-{broker_id}.example.com", 9092)],
                timestamp_ms=0,
                rack=self.size.rack_of(broker_id),
                node=self.size.node_of(broker_id),
            )
            created = Create(found.path, found.encode(), ephemeral=True)
            self.zookeeper.tree.change([created], _FIRST_SESSION + broker_id)

    def _create_topics(self) -> None:
        members = {each: Member(broker_id=each, epoch=self._epoch(each)) for each in self.traffic}
        layout = at_once(
            spread(min(self.size.partitions, MAX_PARTITIONS), REPLICAS, self._locations, start=0)
        )
        for number in range(self.size.topics):
            first = number * self.size.per_topic
            replicas = {index: layout[(first + index) % len(layout)] for index in range(self.size.per_topic)}
            self._create_topic(f"topic-{number:06}", number, replicas, members)

    @property
    def _locations(self) -> Locations:
        return {each: Location(self.size.rack_of(each), self.size.node_of(each)) for each in self.traffic}

    def _create_topic(
        self, name: str, number: int, replicas: dict[int, tuple[int, ...]], members: dict[int, Member]
    ) -> None:
        topic = TopicAssignment(topic=name, topic_id=(number + 1).to_bytes(16, "big"), replicas=replicas)
        created = [Create(topic.path, topic.encode()), Create(f"{topic.path}/partitions", b"")]
        for index, brokers in replicas.items():
            partition = first_state(brokers, RULES)
            state = state_of(TopicPartition(name, index), partition, 0, members)
            created += [Create(state.path.removesuffix("/state"), b""), Create(state.path, state.encode())]
        self.zookeeper.tree.change(created, 0)

    def new_topic(self, name: str, partitions: int) -> TopicAssignment:
        """Return a topic that does not exist yet, placed like the others."""
        return TopicAssignment(
            topic=name,
            topic_id=name.encode().ljust(16),
            replicas=at_once(spread(partitions, REPLICAS, self._locations, start=0)),
        )

    def _epoch(self, broker_id: int) -> int:
        found = self.zookeeper.tree.get(BrokerRegistration.path_of(broker_id))
        assert found is not None
        return found.created_zxid

    # -- brokers -------------------------------------------------------------------------------

    def broker(self, broker_id: int) -> Broker:
        """Return a broker that runs for controller when `join` is called."""
        session = CountingSession(self.zookeeper, _FIRST_SESSION + broker_id)
        broker = Broker(broker_id, session, ClusterView(session.real, lambda *_config: None))
        broker.election = ControllerElection(
            session.real,
            broker.view,
            broker_id=broker_id,
            is_registered=lambda: True,
            rules=lambda _configs: RULES,
            connect=self._connect,
            now_ms=lambda: 0,
            on_elected=self._note,
            on_brokers=self._note_brokers,
            in_doubt_wait_s=lambda: 60.0,
        )
        broker.view.on_brokers.append(broker.election.brokers_changed)
        broker.view.on_controller.append(broker.election.controller_changed)
        self._brokers.append(broker)
        return broker

    async def join(self, broker: Broker) -> None:
        """Have the broker read the cluster, and become the controller if there is none."""
        await broker.view.load()
        if broker.election.controller is not None:
            await broker.controller.propagated(LONG)

    async def lose(self, broker: Broker, gone: Collection[int]) -> None:
        """End the sessions of `gone`; return when the controller `broker` has updated all others."""
        self._handled.clear()
        self.zookeeper.tree.change([Delete(BrokerRegistration.path_of(each)) for each in gone], 0)
        await self._handled.wait()
        await broker.controller.propagated(LONG)

    def resign(self, broker: Broker) -> None:
        """End the session of the controller, without its registration: another broker can be elected."""
        broker.view.close()
        broker.election.resign()
        self.zookeeper.tree.change([Delete("/controller")], 0)

    def stop(self) -> None:
        for each in self._brokers:
            each.view.close()
            each.election.resign()

    async def _connect(self, broker_id: int, _registration: BrokerRegistration) -> Link:
        await asyncio.sleep(0)
        return CountingLink(self.traffic[broker_id], self._count)

    async def _note(self) -> None:
        self._handled.set()

    async def _note_brokers(self, _controller: Controller) -> None:
        self._handled.set()

    # -- counts --------------------------------------------------------------------------------

    def take_traffic(self) -> Traffic:
        """Return what was sent to all brokers since the last call."""
        total = Traffic()
        for traffic in self.traffic.values():
            total.add(traffic)
            traffic.clear()
        return total
