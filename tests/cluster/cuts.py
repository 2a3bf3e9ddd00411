"""Networks that are cut: between brokers, and between a broker and what it registers with."""

import random
import threading
import time
from typing import Final

from cluster.asking import group_coordinator
from cluster.brokers import BrokerProcess
from cluster.cluster import SESSION_S
from cluster.network import Network
from cluster.places import Place
from cluster.probes import TOPIC as PROBES
from cluster.probes import Probe, check_kept, led_by_a_probe, write_to_new_leader
from cluster.stage import Scene
from cluster.waiting import until
from cluster.workload import GROUP, TOPIC

LONG_S: Final = 2 * SESSION_S  # long enough for every session, lag and timeout to run out
AFTER: Final = 5  # writes to a leader that was replaced
CUTS: Final = 6
SEED: Final = 23


def a_leader_is_cut_from_the_other_brokers(scene: Scene) -> None:
    """It keeps its session, and with it what it leads: nothing can be promised there until it is mended."""
    cut_from_brokers(scene, scene.cluster.leader(TOPIC, 0))
    wait(LONG_S)
    mend(scene)


def the_controller_is_cut_from_the_other_brokers(scene: Scene) -> None:
    cut_from_brokers(scene, scene.cluster.controller())
    wait(LONG_S)
    mend(scene)


def the_controller_is_refused_by_a_leader(scene: Scene) -> None:
    """A leader that only the controller cannot reach stays the leader, and loses no acks=1 write.

    Neither does somebody else become the controller because a broker cannot reach it.
    """
    controller = scene.cluster.controller()
    other = next(each for each in scene.cluster.brokers.values() if each is not controller)
    leader, probe = led_by_a_probe(scene.cluster, other.id)
    epoch = scene.cluster.state(PROBES, 0).leader_epoch
    _network(scene).refuse(_place(scene, controller), _place(scene, leader))
    _network(scene).refuse(_place(scene, leader), _place(scene, controller))
    _write_for(LONG_S, probe)
    state = scene.cluster.state(PROBES, 0)
    if (state.leader, state.leader_epoch) != (leader.id, epoch):
        scene.problem(f"broker {leader.id} was replaced although it was alive: {state}")
    if scene.cluster.controller_id() != controller.id:
        scene.problem(f"controller {controller.id} was replaced although it was alive")
    mend(scene)
    scene.cluster.heal()
    probe.close()
    check_kept(scene, probe.accepted)


def _write_for(seconds: float, probe: Probe) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        probe.write(b"refused by nobody %d" % len(probe.accepted), 1)


def a_leader_is_cut_from_zookeeper(scene: Scene) -> None:
    """The others lead on; clients still reach it, and what they ask it to write it refuses."""
    leader = scene.cluster.leader(TOPIC, 0)
    _network(scene).cut([_place(scene, leader)], [_zookeeper(scene)])
    scene.cluster.await_other_leader(TOPIC, 0, leader)
    scene.workload.progress()
    mend(scene)
    scene.cluster.heal()


def the_controller_is_cut_from_zookeeper(scene: Scene) -> None:
    controller = scene.cluster.controller()
    _network(scene).cut([_place(scene, controller)], [_zookeeper(scene)])
    until("another is the controller", lambda: scene.cluster.controller_id() not in {0, controller.id})
    scene.workload.progress()
    mend(scene)
    scene.cluster.heal()


def a_leader_is_cut_from_all_but_its_clients(scene: Scene) -> None:
    """A client that has not heard of the new leader writes to the old one with acks=1, and is refused."""
    leader, probe = led_by_a_probe(scene.cluster)
    before = list(probe.accepted)
    _isolate(scene, leader)
    other = scene.cluster.await_other_leader(PROBES, 0, leader)
    for number in range(AFTER):
        probe.write(b"cut off %d" % number, 1)
    meanwhile = write_to_new_leader(other)
    if probe.accepted != before:
        scene.problem(f"a broker that was replaced acknowledged {probe.accepted[len(before) :]}")
    probe.close()
    scene.workload.progress()
    mend(scene)
    scene.cluster.heal()
    check_kept(scene, probe.accepted + meanwhile)


def the_coordinator_of_a_group_is_cut_from_all_but_its_clients(scene: Scene) -> None:
    broker_id, _ = group_coordinator(scene.cluster.bootstrap.split(","), GROUP)
    _isolate(scene, scene.cluster.brokers[broker_id])
    until("its session is over", lambda: broker_id not in scene.cluster.registered())
    scene.workload.progress()
    mend(scene)
    scene.cluster.heal()


def everybody_is_cut_from_zookeeper(scene: Scene) -> None:
    """All sessions run out at once; nobody may promise anything, and all come back."""
    _network(scene).cut([_place(scene, each) for each in scene.cluster.brokers.values()], [_zookeeper(scene)])
    until("all sessions are over", lambda: not scene.cluster.registered())
    wait(SESSION_S)
    mend(scene)
    scene.cluster.heal()


def all_brokers_are_cut_from_one_another(scene: Scene) -> None:
    places = [_place(scene, each) for each in scene.cluster.brokers.values()]
    for number, place in enumerate(places):
        _network(scene).cut([place], places[number + 1 :])
    wait(LONG_S)
    mend(scene)


def the_network_is_cut_at_random(scene: Scene) -> None:
    """Any two hosts, for a time that may end sessions or not, sometimes two cuts at once."""
    dice = random.Random(SEED)
    places = _network(scene).places
    for _ in range(CUTS):
        for _ in range(dice.choice((1, 2))):
            one, other = dice.sample(places, 2)
            _network(scene).cut([one], [other])
        wait(dice.uniform(0.5, 1.5 * SESSION_S))
        mend(scene)
        if dice.random() < 0.5:
            scene.workload.progress()


def cut_from_brokers(scene: Scene, broker: BrokerProcess) -> None:
    """Cut a broker from the others; it still reaches ZooKeeper, and clients still reach it."""
    _network(scene).cut([_place(scene, broker)], _other_brokers(scene, broker))


def mend(scene: Scene) -> None:
    _network(scene).mend()


def _isolate(scene: Scene, broker: BrokerProcess) -> None:
    others = [*_other_brokers(scene, broker), _zookeeper(scene)]
    _network(scene).cut([_place(scene, broker)], others)


def _network(scene: Scene) -> Network:
    assert scene.network is not None, "this story needs a network that can be cut"
    return scene.network


def _place(scene: Scene, broker: BrokerProcess) -> Place:
    return _network(scene).places[broker.id - 1]


def _other_brokers(scene: Scene, broker: BrokerProcess) -> list[Place]:
    return [_place(scene, each) for each in scene.cluster.brokers.values() if each is not broker]


def _zookeeper(scene: Scene) -> Place:
    return _network(scene).places[-1]


def wait(seconds: float) -> None:
    """Let a cut last: what happens meanwhile, or does not, cannot be asked for."""
    threading.Event().wait(seconds)
