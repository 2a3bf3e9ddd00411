"""Brokers that fall asleep: SIGSTOP for longer than their session lasts, and SIGCONT."""

from typing import Final

from cluster.asking import group_coordinator
from cluster.probes import ACKS_ALL, check_kept, led_by_a_probe, write_to_new_leader
from cluster.probes import TOPIC as PROBES
from cluster.stage import Scene
from cluster.waiting import until
from cluster.workload import GROUP, TOPIC

BUFFERED: Final = 6  # requests of a kind that wait in a sleeping broker's socket


def a_leader_sleeps(scene: Scene) -> None:
    leader = scene.cluster.leader(TOPIC, 0)
    leader.pause()
    scene.cluster.await_other_leader(TOPIC, 0, leader)
    scene.workload.progress()
    leader.resume()
    scene.cluster.heal()


def a_follower_sleeps(scene: Scene) -> None:
    follower = scene.cluster.follower(TOPIC, 0)
    follower.pause()
    until("the sleeper is not in sync", lambda: follower.id not in scene.cluster.state(TOPIC, 0).isr)
    scene.workload.progress()
    follower.resume()
    scene.cluster.heal()


def the_controller_sleeps(scene: Scene) -> None:
    controller = scene.cluster.controller()
    controller.pause()
    until("another is the controller", lambda: scene.cluster.controller_id() not in {0, controller.id})
    scene.workload.progress()
    controller.resume()
    scene.cluster.heal()


def the_coordinator_of_a_group_sleeps(scene: Scene) -> None:
    """The group finds another one, with all that it has committed."""
    broker_id, _ = group_coordinator(scene.cluster.bootstrap.split(","), GROUP)
    sleeper = scene.cluster.brokers[broker_id]
    sleeper.pause()
    until("its session is over", lambda: broker_id not in scene.cluster.registered())
    scene.workload.progress()
    sleeper.resume()
    scene.cluster.heal()


def everybody_sleeps(scene: Scene) -> None:
    """All three, beyond their sessions, as a laptop with its lid closed; they wake in another order."""
    brokers = list(scene.cluster.brokers.values())
    for broker in brokers:
        broker.pause()
    until("all sessions are over", lambda: not scene.cluster.registered())
    for broker in reversed(brokers):
        broker.resume()
    scene.cluster.heal()


def a_woken_leader_is_asked_to_write(scene: Scene) -> None:
    """Writes that wait in its socket, and those that come before it has rejoined, are refused."""
    cluster = scene.cluster
    leader, probe = led_by_a_probe(cluster)
    before = list(probe.accepted)
    leader.pause()
    other = cluster.await_other_leader(PROBES, 0, leader)
    for number in range(2 * BUFFERED):
        probe.send(b"asleep %d" % number, 1 if number % 2 else ACKS_ALL)
    meanwhile = write_to_new_leader(other)
    leader.resume()
    probe.receive_all()

    def back() -> bool:
        probe.write(b"awake %d" % probe.refused, 1)
        return leader.id in cluster.state(PROBES, 0).isr

    until("the woken broker is in sync again", back)
    probe.close()
    scene.figures["writes refused after waking"] = probe.refused
    if probe.accepted != before:
        scene.problem(f"a broker that was replaced acknowledged {probe.accepted[len(before) :]}")
    cluster.heal()
    check_kept(scene, probe.accepted + meanwhile)
