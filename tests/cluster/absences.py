"""What brokers register with goes away: killed, asleep, or one of its servers; and comes back."""

import os
import threading
from collections.abc import Callable
from functools import partial
from signal import SIGCONT, SIGSTOP, Signals
from typing import Final

from cluster.cluster import SESSION_S
from cluster.coordinators import Ensemble
from cluster.stage import Scene
from cluster.waiting import until
from cluster.workload import TOPIC
from zookeepers import ZooKeeperProcess

LONG_S: Final = 2 * SESSION_S


def zookeeper_is_killed(scene: Scene) -> None:
    """Nobody can be elected; what is promised meanwhile is kept, and everything goes on afterwards."""
    before = len(scene.workload.ledger.acknowledged)
    scene.cluster.coordination.kill()
    _wait(LONG_S)
    scene.figures["acknowledged without it"] = len(scene.workload.ledger.acknowledged) - before
    scene.cluster.coordination.start()
    scene.workload.progress()


def zookeeper_sleeps(scene: Scene) -> None:
    scene.cluster.coordination.pause()
    _wait(LONG_S)
    scene.cluster.coordination.resume()
    scene.workload.progress()


def a_leader_is_killed_while_zookeeper_is_away(scene: Scene) -> None:
    leader = scene.cluster.leader(TOPIC, 0)
    scene.cluster.coordination.kill()
    leader.kill()
    _wait(SESSION_S)
    scene.cluster.coordination.start()
    scene.cluster.await_other_leader(TOPIC, 0, leader)
    scene.workload.progress()
    leader.start()
    scene.cluster.heal()


def all_are_killed_and_zookeeper_too(scene: Scene) -> None:
    """The power goes, for everybody; the processes come back with what was on their disks."""
    for broker in scene.cluster.brokers.values():
        broker.kill()
    scene.cluster.coordination.kill()
    scene.cluster.coordination.start()
    scene.cluster.start()
    scene.workload.progress()


def the_leader_of_the_ensemble_is_killed(scene: Scene) -> None:
    """Two of three servers are a majority: brokers find another one within their sessions."""
    _without_leader(scene, ZooKeeperProcess.kill, ZooKeeperProcess.launch)


def the_leader_of_the_ensemble_sleeps(scene: Scene) -> None:
    """Its connections stay open and nothing comes: that takes longer to notice."""
    _without_leader(scene, partial(_signal, number=SIGSTOP), partial(_signal, number=SIGCONT))


def _without_leader(
    scene: Scene, take: Callable[[ZooKeeperProcess], None], give_back: Callable[[ZooKeeperProcess], None]
) -> None:
    ensemble = scene.cluster.coordination
    assert isinstance(ensemble, Ensemble), "only an ensemble has a server to spare"
    registered = _epochs(scene)
    leader = until("a server leads", ensemble.leader)
    take(leader)
    until("another server leads", lambda: ensemble.leader(besides=leader))
    scene.workload.progress()
    until("the ensemble answers again", lambda: scene.cluster.registered() == [1, 2, 3])
    scene.figures["sessions that were lost"] = sum(
        registered[each] != epoch for each, epoch in _epochs(scene).items()
    )
    give_back(leader)
    scene.workload.progress()


def _signal(server: ZooKeeperProcess, number: Signals) -> None:
    assert server.pid is not None, server.address
    os.kill(server.pid, number)


def _epochs(scene: Scene) -> dict[int, int]:
    """Since when each broker is registered."""
    found = {}
    for broker_id in scene.cluster.registered():
        _, stat = scene.cluster.znode(f"/brokers/ids/{broker_id}")
        found[broker_id] = stat.czxid
    return found


def _wait(seconds: float) -> None:
    """Let an absence last: what happens meanwhile, or does not, cannot be asked for."""
    threading.Event().wait(seconds)
