"""What may happen to the brokers' processes: they die, stop and come back, one by one or all at once."""

import random
from pathlib import Path
from typing import Final

from cluster.asking import group_coordinator
from cluster.brokers import BrokerProcess
from cluster.probes import ACKS_ALL, check_kept, led_by_a_probe, write_to_new_leader
from cluster.probes import TOPIC as PROBES
from cluster.stage import Scene
from cluster.waiting import until
from cluster.workload import GROUP, TOPIC
from support.records import make_batch

KILLS: Final = 8
SEED: Final = 11
ALONE: Final = 9  # records that a leader has and its followers have not


def a_leader_is_killed(scene: Scene) -> None:
    _kill_and_restart(scene, scene.cluster.leader(TOPIC, 0))


def a_leader_dies_with_what_only_it_has(scene: Scene) -> None:
    """Its followers sleep while it takes records, none of which it may acknowledge; then others lead.

    When it is back it has to drop those records, for others stand at their places.
    """
    leader, probe = led_by_a_probe(scene.cluster)
    segments = leader.log_dir / f"{PROBES}-0"
    followers = [each for each in scene.cluster.brokers.values() if each is not leader]
    for follower in followers:
        follower.pause()
    before = _bytes_in(segments)
    values = [b"alone %d" % number for number in range(ALONE)]
    for value in values:
        probe.send(value, ACKS_ALL)
    size = sum(len(make_batch([value])) for value in values)
    until("it has taken what nobody copies", lambda: _bytes_in(segments) == before + size)
    leader.kill()
    for follower in followers:
        follower.resume()
    probe.receive_what_came()
    meanwhile = write_to_new_leader(scene.cluster.await_other_leader(PROBES, 0, leader))
    scene.workload.progress()
    leader.start()
    scene.cluster.heal()
    check_kept(scene, probe.accepted + meanwhile)


def a_follower_is_killed(scene: Scene) -> None:
    leader = scene.cluster.leader(TOPIC, 0)
    idle = next(each for each in scene.cluster.brokers.values() if each is not leader)
    _kill_and_restart(scene, idle)


def the_controller_is_killed(scene: Scene) -> None:
    _kill_and_restart(scene, scene.cluster.controller())


def the_coordinator_of_a_group_is_killed(scene: Scene) -> None:
    broker_id, _ = group_coordinator(scene.cluster.bootstrap.split(","), GROUP)
    _kill_and_restart(scene, scene.cluster.brokers[broker_id])


def each_is_killed_in_turn(scene: Scene) -> None:
    """Leader, follower, controller and the group's coordinator, each while the others have all in sync."""
    for kill in (
        a_leader_dies_with_what_only_it_has,
        a_follower_is_killed,
        the_controller_is_killed,
        the_coordinator_of_a_group_is_killed,
    ):
        kill(scene)


def brokers_are_killed_at_random(scene: Scene) -> None:
    """One or two at a time, again and again, some while they are coming back; never all three."""
    dice = random.Random(SEED)
    brokers = list(scene.cluster.brokers.values())
    for _ in range(KILLS):
        for victim in dice.sample(brokers, dice.choice((1, 1, 2))):
            victim.kill()
        if dice.random() < 0.5 and sum(each.running for each in brokers) > 1:
            scene.workload.progress()
        scene.cluster.start()
        if dice.random() < 0.5:
            scene.cluster.heal()


def two_are_killed_at_once(scene: Scene) -> None:
    """Too few are in sync to promise anything: writes wait until one is back."""
    leader, follower = scene.cluster.leader(TOPIC, 0), scene.cluster.follower(TOPIC, 0)
    leader.kill()
    follower.kill()
    follower.start()
    scene.workload.progress()


def all_are_killed_at_once(scene: Scene) -> None:
    for broker in scene.cluster.brokers.values():
        broker.kill()
    scene.cluster.start()
    scene.workload.progress()


def all_are_killed_and_come_back_one_by_one(scene: Scene) -> None:
    for broker in scene.cluster.brokers.values():
        broker.kill()
    for broker in scene.cluster.brokers.values():
        broker.start()
    scene.workload.progress()


def brokers_are_restarted_one_after_the_other(scene: Scene) -> None:
    """A rolling restart: every broker hands over what it leads before it goes."""
    took = []
    for broker in scene.cluster.brokers.values():
        took.append(broker.stop())
        broker.start()
        scene.cluster.heal()
    scene.figures["slowest stop s"] = round(max(took), 2)


def _kill_and_restart(scene: Scene, broker: BrokerProcess) -> None:
    broker.kill()
    scene.workload.progress()
    broker.start()
    scene.cluster.heal()


def _bytes_in(directory: Path) -> int:
    return sum(each.stat().st_size for each in directory.glob("*.log"))
