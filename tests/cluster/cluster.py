"""Three brokers and what they register with: started, looked at through ZooKeeper, healed, stopped."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from cluster.brokers import BrokerProcess
from cluster.coordinators import Coordination
from cluster.places import HERE, Place
from cluster.waiting import PATIENCE_S, NotInTime, until
from headrace.coordination.client_security import ClientSecurity, secure
from headrace.coordination.credentials import Credential
from headrace.coordination.znodes import (
    BROKER_IDS,
    TOPICS,
    Controller,
    PartitionState,
    TopicAssignment,
    topic_path,
)
from wire.confluent import settings as client_settings

SESSION_S: Final = 4
REPLICAS: Final = 3
SEGMENT_BYTES: Final = 65536
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(SESSION_S * 1000),
    "replica.lag.time.max.ms": "6000",
    "default.replication.factor": str(REPLICAS),
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": str(REPLICAS),
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "replica.selector.class": "RackAwareReplicaSelector",
    "auto.create.topics.enable": "false",
}


class Cluster:
    """Brokers 1, 2, 3 and so on. What it says of leaders and the controller is what is written down."""

    def __init__(
        self,
        root: Path,
        coordination: Coordination,
        *,
        places: Sequence[Place] = (HERE,) * REPLICAS,
        zookeepers: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`zookeepers` are the brokers' ways to ZooKeeper, if they have one each."""
        self.coordination = coordination
        self._zookeepers = zookeepers
        self._root = root
        self._settings = SETTINGS | dict(settings or {})
        self.brokers: dict[int, BrokerProcess] = {}
        for place in places:
            self.add(place)
        patience = {"max_tries": -1, "max_delay": 0.2, "deadline": PATIENCE_S}
        self._zookeeper = KazooClient(coordination.address, timeout=10, command_retry=patience)

    def add(self, place: Place = HERE) -> BrokerProcess:
        """One broker more; it is not started."""
        broker_id = len(self.brokers) + 1
        zookeeper = self._zookeepers[broker_id - 1] if self._zookeepers else self.coordination.address
        broker = BrokerProcess(broker_id, self._root, zookeeper, self._settings, place=place)
        self.brokers[broker_id] = broker
        return broker

    def _authenticate(self) -> None:
        """Use the brokers' credential for ZooKeeper, if they have one."""
        path = self._settings.get("zookeeper.sasl.jaas.file")
        if path is not None:
            security = ClientSecurity(credential=Credential.of_file(Path(path)))
            secure(self._zookeeper, security, None, lambda: None)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    # -- life ----------------------------------------------------------------------------------

    @contextmanager
    def running(self) -> Iterator["Cluster"]:
        """The cluster from its start; at the end nothing of it runs any more, whatever happened."""
        try:
            self._authenticate()
            self._zookeeper.start(timeout=30)
            self.start()
            yield self
        finally:
            for broker in self.brokers.values():
                broker.kill()
            self._zookeeper.stop()
            self._zookeeper.close()

    def start(self) -> None:
        """Start what does not run, all at the same time."""
        idle = [broker for broker in self.brokers.values() if not broker.running]
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(BrokerProcess.start, idle))

    def stop(self) -> None:
        """Stop every broker cleanly, one after the other."""
        for broker in self.brokers.values():
            broker.stop()

    def heal(self) -> None:
        """Everybody is back, and every partition has a leader and all its replicas in sync."""
        for broker in self.brokers.values():
            if broker.paused:
                broker.resume()
        try:
            until("all replicas are in sync", self._is_well)
        except NotInTime as error:
            error.add_note(f"out of sync: {self.out_of_sync()}")
            raise

    def _is_well(self) -> bool:
        for broker in self.brokers.values():
            if not broker.running:
                broker.launch()  # perhaps again: it ends if ZooKeeper does not answer
        return not self.out_of_sync()

    # -- topics --------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int, leader: int | None = None, **configs: str) -> None:
        """A topic whose segments are so small that some are full before a story ends.

        With `leader`, that broker is the first choice of every partition. Settings have underscores for dots.
        """
        admin = AdminClient(client_settings(self.bootstrap))
        given = {key.replace("_", "."): value for key, value in configs.items()}
        small = {"segment.bytes": str(SEGMENT_BYTES)} | given
        if leader is None:
            topic = NewTopic(name, num_partitions=partitions, replication_factor=REPLICAS, config=small)
        else:
            replicas = sorted(self.brokers, key=lambda each: each != leader)[:REPLICAS]
            topic = NewTopic(name, partitions, replica_assignment=[replicas] * partitions, config=small)
        admin.create_topics([topic])[name].result(timeout=30)

    def znode(self, path: str) -> tuple[bytes, Any]:
        """What is at `path`; waits for ZooKeeper if that is away."""
        data, stat = self._zookeeper.retry(self._zookeeper.get, path)
        return data, stat

    def state(self, topic: str, partition: int) -> PartitionState:
        data, _ = self.znode(PartitionState.path_of(topic, partition))
        return PartitionState.decode(topic, partition, data)

    def assignment(self, topic: str) -> TopicAssignment:
        data, _ = self.znode(topic_path(topic))
        return TopicAssignment.decode(topic, data)

    def topics(self) -> list[str]:
        return sorted(self._zookeeper.retry(self._zookeeper.get_children, TOPICS))

    def placement(self) -> dict[str, tuple[int, ...]]:
        """Every partition with the brokers that have its replicas."""
        return {
            f"{topic}-{index}": tuple(replicas)
            for topic in self.topics()
            for index, replicas in self.assignment(topic).replicas.items()
        }

    def out_of_sync(self) -> dict[str, PartitionState]:
        """Partitions without a leader, or with replicas that are not in sync."""
        found = {}
        for topic in self.topics():
            for index, replicas in self.assignment(topic).replicas.items():
                state = self.state(topic, index)
                if state.leader == -1 or set(state.isr) != set(replicas):
                    found[f"{topic}-{index}"] = state
        return found

    # -- who is what ---------------------------------------------------------------------------

    def leader(self, topic: str, partition: int) -> BrokerProcess:
        return self.brokers[until("somebody leads", lambda: max(self.state(topic, partition).leader, 0))]

    def follower(self, topic: str, partition: int) -> BrokerProcess:
        """One that is in sync and does not lead."""
        state = self.state(topic, partition)
        return self.brokers[next(each for each in state.isr if each != state.leader)]

    def controller(self) -> BrokerProcess:
        return self.brokers[until("there is a controller", self.controller_id)]

    def registered(self) -> list[int]:
        """The brokers whose sessions last."""
        return sorted(int(name) for name in self._zookeeper.retry(self._zookeeper.get_children, BROKER_IDS))

    def controller_id(self) -> int:
        """0 if there is none."""
        try:
            data, _ = self.znode(Controller.path)
        except NoNodeError:
            return 0
        return Controller.decode(data).broker_id

    def await_other_leader(self, topic: str, partition: int, than: BrokerProcess) -> BrokerProcess:
        """Return the new leader once `than` does not lead any more."""
        leader = until(
            f"another broker than {than.id} leads {topic}-{partition}",
            lambda: (found := self.state(topic, partition).leader) not in {-1, than.id} and found,
        )
        return self.brokers[leader]
