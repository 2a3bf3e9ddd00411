"""Three racks, each with a broker and a ZooKeeper server, and one of them cut off from the two others.

The server that is cut off does not know it for a while, and answers what it can from memory. Its broker must
not take that for a sign that its session lasts.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cluster.cluster import REPLICAS, SESSION_S, Cluster
from cluster.coordinators import SERVERS, Ensemble
from cluster.network import Network
from cluster.places import Place
from cluster.probes import TOPIC as PROBES
from cluster.probes import check_kept, led_by_a_probe, write_to_new_leader
from cluster.stage import Outcome, Scene, Story, play_on, workload
from headrace.coordination.zookeeper import ELECTION_OFFSET, QUORUM_OFFSET, Server
from zookeepers import RunningZooKeeper, ZooKeeperProcess

PORT: Final = 2181
TICK_MS: Final = 2000  # ZooKeeper's usual: a server notices after five of them that it is alone
LONG_S: Final = 3 * SESSION_S


class FarServer(Server):
    """A server on a host of its own."""

    def __init__(self, near: Server, places: Sequence[Place], number: int) -> None:
        self.__dict__.update(near.__dict__)
        self._place = places[number - 1]
        self._host, self._port = self._place.host, PORT
        self.address = f"{self._host}:{PORT}"
        self._settings |= {"clientPort": PORT, "clientPortAddress": self._host}
        for each, place in enumerate(places, 1):
            quorum, election = PORT + QUORUM_OFFSET, PORT + ELECTION_OFFSET
            self._settings[f"server.{each}"] = f"{place.host}:{quorum}:{election}"

    def prepare(self) -> list[str]:
        return [*self._place.inside, *super().prepare()]


class SpreadEnsemble(Ensemble):
    """Three servers, each on a host of its own; the test itself never asks the first."""

    def __init__(self, root: Path, places: Sequence[Place]) -> None:
        RunningZooKeeper.__init__(self, root / "zookeeper", servers=SERVERS, tick_ms=TICK_MS)
        self.servers = [
            ZooKeeperProcess(FarServer(each.server, places, number))
            for number, each in enumerate(self.servers, 1)
        ]

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    @property
    def address(self) -> str:
        return ",".join(self.addresses[1:])


def play_in_racks(story: Story, coordination: str, root: Path) -> Outcome:
    """Play `story` where each broker has a ZooKeeper server beside it and asks no other."""
    with Network.of(REPLICAS + SERVERS) as network:
        places, servers = network.places[:REPLICAS], network.places[REPLICAS:]
        with SpreadEnsemble(root, servers) as ensemble:
            cluster = Cluster(root, ensemble, places=places, zookeepers=ensemble.addresses)
            with cluster.running():
                return play_on(Scene(cluster, workload(cluster, coordination), root, network=network), story)


def a_rack_is_cut_off(scene: Scene) -> None:
    """A leader whose ZooKeeper server is as cut off as itself refuses writes once others may lead."""
    network = scene.network
    assert network is not None, "this story needs a network that can be cut"
    leader, probe = led_by_a_probe(scene.cluster, leader_id=1)
    before = list(probe.accepted)
    rack = [network.places[0], network.places[REPLICAS]]
    network.cut(rack, [each for each in network.places if each not in rack])
    other = scene.cluster.await_other_leader(PROBES, 0, leader)
    meanwhile = write_to_new_leader(other)
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        probe.write(b"late", 1)
    if probe.accepted != before:
        scene.problem(f"a broker that was replaced acknowledged {probe.accepted[len(before) :][:5]}")
    probe.close()
    scene.workload.progress()
    network.mend()
    scene.cluster.heal()
    check_kept(scene, before + meanwhile)
