"""What may happen to the brokers' processes: they die, stop and come back, one by one or all at once."""

import random
from typing import Final

from cluster.asking import group_coordinator
from cluster.brokers import BrokerProcess
from cluster.stage import Scene
from cluster.workload import GROUP, TOPIC

KILLS: Final = 8
SEED: Final = 11


def a_leader_is_killed(scene: Scene) -> None:
    _kill_and_restart(scene, scene.cluster.leader(TOPIC, 0))


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
        a_leader_is_killed,
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
