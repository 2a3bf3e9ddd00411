"""Brokers that fall asleep: SIGSTOP for longer than their session lasts, and SIGCONT."""

import contextlib
from typing import Final

from cluster.asking import OFFSET_FETCH, commit_offset, group_coordinator, offsets_of
from cluster.probes import ACKS_ALL, check_kept, led_by_a_probe, write_to_new_leader
from cluster.probes import TOPIC as PROBES
from cluster.stage import Scene
from cluster.waiting import until
from cluster.workload import GROUP, TOPIC
from wire.raw import RawClient

PROBED_GROUP: Final = "probed"
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


def a_woken_coordinator_is_asked_for_offsets(scene: Scene) -> None:
    """What was committed elsewhere meanwhile it does not know, so it must not answer."""
    bootstraps = scene.cluster.bootstrap.split(",")
    commit_offset(bootstraps, PROBED_GROUP, TOPIC, 1)
    broker_id, address = group_coordinator(bootstraps, PROBED_GROUP)
    sleeper = scene.cluster.brokers[broker_id]
    others = [each.bootstrap for each in scene.cluster.brokers.values() if each is not sleeper]
    answers = []
    with RawClient(address) as client, contextlib.suppress(ConnectionError):  # to hang up is no lie
        client.ask(offsets_of(PROBED_GROUP), OFFSET_FETCH)
        sleeper.pause()
        until("its session is over", lambda: broker_id not in scene.cluster.registered())
        until("another coordinates", lambda: commit_offset(others, PROBED_GROUP, TOPIC, 2))
        for _ in range(BUFFERED):
            client.send(offsets_of(PROBED_GROUP), OFFSET_FETCH)
        sleeper.resume()
        answers += [client.receive(offsets_of(PROBED_GROUP), OFFSET_FETCH) for _ in range(BUFFERED)]
    for _ in range(BUFFERED):
        with RawClient(address) as client, contextlib.suppress(ConnectionError):
            answers.append(client.ask(offsets_of(PROBED_GROUP), OFFSET_FETCH))
    stale = [each.groups[0] for each in answers if not each.groups[0].error_code]
    scene.figures["offsets refused after waking"] = len(answers) - len(stale)
    if any(answer.topics[0].partitions[0].committed_offset != 2 for answer in stale if answer.topics):
        scene.problem(f"a coordinator that was replaced answers with old offsets: {stale}")
    if any(not answer.topics for answer in stale):
        scene.problem("a coordinator that was replaced says that nothing was committed")
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


def the_event_loop_of_a_leader_is_stuck(scene: Scene) -> None:
    """Its other threads are well, and must not keep its session for it: others lead while it does nothing."""
    leader, probe = led_by_a_probe(scene.cluster)
    with leader.stuck():
        other = scene.cluster.await_other_leader(PROBES, 0, leader)
        meanwhile = write_to_new_leader(other)
        scene.workload.progress()
    scene.cluster.heal()
    probe.close()
    check_kept(scene, probe.accepted + meanwhile)
