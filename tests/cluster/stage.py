"""One story from curtain to curtain: a cluster under load, what happens to it, and the checks at the end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cluster import checks, replicas
from cluster.cluster import REPLICAS, Cluster
from cluster.coordinators import Coordination, Embedded, Ensemble, EnsembleElsewhere
from cluster.ledger import Record, Slot
from cluster.network import Network
from cluster.workload import PARTITIONS, TOPIC, Workload
from headrace.coordination.credentials import FILE_NAME
from wire.confluent import read

EMBEDDED: Final = "embedded"
ENSEMBLE: Final = "zookeeper"
COORDINATIONS: Final[Mapping[str, Callable[[Path], Coordination]]] = {EMBEDDED: Embedded, ENSEMBLE: Ensemble}
ELSEWHERE: Final[Mapping[str, type[Embedded] | type[EnsembleElsewhere]]] = {
    EMBEDDED: Embedded,
    ENSEMBLE: EnsembleElsewhere,
}
GROUP_PROTOCOLS: Final = {EMBEDDED: "classic", ENSEMBLE: "consumer"}  # so that both are played


@dataclass(slots=True)
class Scene:
    """What a story works with."""

    cluster: Cluster
    workload: Workload
    root: Path
    figures: dict[str, object] = field(default_factory=dict)  # for people to read; nothing depends on them
    network: Network | None = None  # where it can be cut: the brokers' places first, then ZooKeeper's
    forgiven: set[int] = field(default_factory=set)  # brokers that may complain, in their logs

    def problem(self, sentence: str) -> None:
        self.workload.ledger.problems.append(sentence)


Story = Callable[[Scene], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    records: int
    figures: Mapping[str, object]
    problems: list[str]


def play(story: Story, coordination: str, root: Path, settings: Mapping[str, str] | None = None) -> Outcome:
    """Play `story` under load, heal the cluster, stop it, and say what is wrong."""
    with (
        COORDINATIONS[coordination](root) as coordinator,
        Cluster(root, coordinator, settings=settings).running() as cluster,
    ):
        return play_on(Scene(cluster, workload(cluster, coordination), root), story)


def play_in_network(story: Story, coordination: str, root: Path) -> Outcome:
    """Like `play`, with every broker, and what they register with, on a host of its own."""
    with Network.of(REPLICAS + 1) as network:
        *places, elsewhere = network.places
        kind = ELSEWHERE[coordination]
        # Off the loopback both create a credential, which brokers need.
        settings = {"zookeeper.sasl.jaas.file": str(root / kind.directory / FILE_NAME)}
        with (
            kind(root, elsewhere) as coordinator,
            Cluster(root, coordinator, places=places, settings=settings).running() as cluster,
        ):
            return play_on(Scene(cluster, workload(cluster, coordination), root, network=network), story)


def workload(cluster: Cluster, coordination: str) -> Workload:
    cluster.create_topic(TOPIC, PARTITIONS)
    return Workload(cluster, GROUP_PROTOCOLS[coordination])


def play_on(scene: Scene, story: Story) -> Outcome:
    """Play `story` on a cluster that runs; on return its brokers are stopped."""
    cluster = scene.cluster
    try:
        scene.workload.start()
        story(scene)
        scene.workload.progress()
        cluster.heal()
        scene.workload.progress()
    except BaseException as error:
        scene.workload.abandon()
        ledger = scene.workload.ledger
        error.add_note(f"refused so far: {ledger.refusals}; problems: {ledger.problems}")
        raise
    scene.workload.finish()
    log = whole_log(cluster)
    found = checks.problems(scene.workload.ledger, log)
    for group in scene.workload.other_groups:
        found += [*checks.unread(group, log), *group.problems]
    expected = cluster.placement()
    cluster.stop()
    directories = {each.id: each.log_dir for each in cluster.brokers.values()}
    found += [*replicas.misplaced(directories, expected), *replicas.differences(directories.values())]
    heard = [each for each in cluster.brokers.values() if each.id not in scene.forgiven]
    found += [f"broker {each.id}: {line}" for each in heard for line in each.complaints()]
    ledger = scene.workload.ledger
    scene.figures |= {"longest pause s": round(ledger.longest_pause_s, 2), "read again": ledger.again}
    return Outcome(len(ledger.acknowledged) + len(ledger.somewhere), scene.figures, found)


def whole_log(cluster: Cluster) -> dict[Slot, Record]:
    messages = read(cluster.bootstrap, TOPIC, partitions=range(PARTITIONS))
    return {
        Slot(message.partition(), message.offset()): Record.of(message.key(), message.value())
        for message in messages
    }
