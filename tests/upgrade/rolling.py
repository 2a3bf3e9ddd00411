"""Rolling upgrades and downgrades under load: brokers are replaced one by one by those of another version."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cluster.brokers import BrokerProcess
from cluster.cluster import Cluster
from cluster.coordinators import Coordination, Embedded, Ensemble
from cluster.stage import Outcome, Scene, play_on
from cluster.transactions import tellers_at_work
from cluster.workload import PARTITIONS, TOPIC, Workload
from upgrade.previous import CURRENT
from wire.confluent import read, send

PROTOCOLS: Final = ("classic", "consumer")
CREATED_PARTITIONS: Final = 3
RECORDS: Final = 20  # of a topic that is created between two steps

PASSWORD: Final = "wonderland"
SECURED: Final = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.inside.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="broker" password="{PASSWORD}" user_broker="{PASSWORD}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:broker",
    "allow.everyone.if.no.acl.found": "true",
}
"""Brokers authenticate to one another, and their requests are authorized; clients need no password."""

Stop = Callable[[BrokerProcess], object]


class VersionedEmbedded(Embedded):
    """The embedded coordinator in a given version."""

    def __init__(self, root: Path, source: Path) -> None:
        super().__init__(root)
        self.use(source)

    def use(self, source: Path) -> None:
        """Run this version from the next start on."""
        self._environment["PYTHONPATH"] = str(source)


def on_embedded(root: Path, source: Path) -> Coordination:
    return VersionedEmbedded(root, source)


def on_zookeeper(root: Path, _source: Path) -> Coordination:
    return Ensemble(root)


class Upgrade:
    """What an upgrade story works with: the scene, and both versions."""

    def __init__(self, scene: Scene, previous: Path) -> None:
        self.scene = scene
        self.cluster = scene.cluster
        self.previous = previous
        self._created: list[str] = []

    def replace(self, broker: BrokerProcess, source: Path, stop: Stop = BrokerProcess.stop) -> None:
        """Stop a broker and start it in another version; return when the cluster is in sync under load."""
        stop(broker)
        broker.use(source)
        broker.start()
        self.cluster.heal()
        self.scene.workload.progress()

    def replace_all(self, source: Path, stop: Stop = BrokerProcess.stop) -> None:
        """Replace all brokers, the controller last: until then it is of another version than the others."""
        waiting = set(self.cluster.brokers)
        while waiting:
            controller = self.cluster.controller().id
            broker_id = min(waiting, key=lambda each: (each == controller, each))
            waiting.remove(broker_id)
            self.replace(self.cluster.brokers[broker_id], source, stop)
            self.create_topic()

    def create_topic(self) -> None:
        """Create a topic in a cluster of mixed versions, and write to the first of its partitions."""
        name = f"created-{len(self._created)}"
        self.cluster.create_topic(name, CREATED_PARTITIONS)
        self._created.append(name)
        self._write(name, 0)

    def check_topics(self) -> None:
        """Write to the other partitions, which have been empty through all versions, and read everything."""
        for name in self._created:
            for partition in range(1, CREATED_PARTITIONS):
                self._write(name, partition)
            messages = read(self.cluster.bootstrap, name, partitions=range(CREATED_PARTITIONS))
            found = sorted((message.partition(), message.offset(), message.value()) for message in messages)
            assert found == [
                (partition, offset, _value(offset))
                for partition in range(CREATED_PARTITIONS)
                for offset in range(RECORDS)
            ], name

    def _write(self, name: str, partition: int) -> None:
        messages: list[Mapping[str, object]] = [
            {"value": _value(offset), "partition": partition} for offset in range(RECORDS)
        ]
        reports = send(self.cluster.bootstrap, name, messages, enable_idempotence=True)
        assert [error for error, _ in reports if error is not None] == [], name


Story = Callable[[Upgrade], None]


def _value(offset: int) -> bytes:
    return b"record %d" % offset


@contextmanager
def cluster_of(
    previous: Path, root: Path, coordination: Callable[[Path, Path], Coordination], *, secured: bool
) -> Iterator[Scene]:
    """Three brokers of the previous version, with clients that are not started."""
    with coordination(root, previous) as coordinator:
        cluster = Cluster(root, coordinator, settings=SECURED if secured else None)
        for broker in cluster.brokers.values():
            broker.use(previous)
            if secured:
                listeners = f"PLAINTEXT://{broker.bootstrap},INSIDE://127.0.0.1:0"
                broker.arguments.append(f"--set=listeners={listeners}")
        with cluster.running():
            cluster.create_topic(TOPIC, PARTITIONS)
            yield Scene(cluster, Workload(cluster, *PROTOCOLS), root)


def play(
    story: Story,
    previous: Path,
    root: Path,
    coordination: Callable[[Path, Path], Coordination] = on_embedded,
    *,
    secured: bool = False,
) -> Outcome:
    """Play `story` on three brokers of the previous version under load, and say what is wrong afterwards."""

    def told(scene: Scene) -> None:
        upgrade = Upgrade(scene, previous)
        with tellers_at_work(scene):
            story(upgrade)
        upgrade.check_topics()

    with cluster_of(previous, root, coordination, secured=secured) as scene:
        return play_on(scene, told)


# -- the stories ---------------------------------------------------------------------------------


def upgraded_and_one_goes_back(upgrade: Upgrade) -> None:
    """An old controller with new followers, then a new controller with an old follower."""
    upgrade.replace_all(CURRENT)
    controller = upgrade.cluster.controller().id
    goes_back = next(each for each in upgrade.cluster.brokers.values() if each.id != controller)
    upgrade.replace(goes_back, upgrade.previous)
    upgrade.create_topic()


def upgraded_and_downgraded(upgrade: Upgrade) -> None:
    """All brokers and the coordinator, there and back."""
    upgrade.replace_all(CURRENT)
    _replace_coordinator(upgrade, CURRENT)
    upgrade.replace_all(upgrade.previous)
    _replace_coordinator(upgrade, upgrade.previous)


def upgraded_and_downgraded_by_kills(upgrade: Upgrade) -> None:
    """Every broker is killed with SIGKILL, and started in the other version."""
    upgrade.replace_all(CURRENT, BrokerProcess.kill)
    upgrade.replace_all(upgrade.previous, BrokerProcess.kill)


def _replace_coordinator(upgrade: Upgrade, source: Path) -> None:
    coordination = upgrade.cluster.coordination
    if isinstance(coordination, VersionedEmbedded):
        coordination.stop()
        coordination.use(source)
        coordination.start()
        upgrade.cluster.heal()
        upgrade.scene.workload.progress()
