"""What may happen to brokers while transactions begin and end: each stays whole, and none stays open."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cli.command import Command
from cluster.asking import coordinator_of
from cluster.brokers import BrokerProcess
from cluster.cluster import REPLICAS
from cluster.cuts import cut_from_brokers, mend, wait
from cluster.stage import Scene
from cluster.tellers import TARGET, Tellers, unfinished
from cluster.waiting import PATIENCE_S, until

TRANSACTION: Final = 1  # a type of coordinator
OPEN: Final = 3  # transactions that nobody ends
ROUNDS: Final = 3
CUT_S: Final = 2.5  # shorter than a session, so that the coordinator stays the coordinator until it is killed


@contextmanager
def tellers_at_work(scene: Scene, **configs: str) -> Iterator[Tellers]:
    """Tellers from the beginning of a story to its end, and then what is wrong with their transactions."""
    tellers = Tellers(scene.cluster, **configs)
    try:
        yield tellers
        scene.cluster.heal()
        tellers.progress()
    finally:
        tellers.stop()
    scene.figures["committed"] = tellers.committed
    for problem in tellers.problems():
        scene.problem(problem)


def _coordinator(scene: Scene, transactional_id: str = "teller-0") -> BrokerProcess:
    addresses = [each.bootstrap for each in scene.cluster.brokers.values() if each.running]
    return scene.cluster.brokers[coordinator_of(addresses, TRANSACTION, transactional_id)]


def a_transaction_coordinator_is_killed(scene: Scene) -> None:
    """While it decides, writes markers, and completes: another one finds what it had decided."""
    with tellers_at_work(scene) as tellers:
        for _ in range(ROUNDS):
            victim = _coordinator(scene)
            victim.kill()
            tellers.progress()
            victim.start()
            scene.cluster.heal()


def a_transaction_coordinator_sleeps(scene: Scene) -> None:
    """Requests wait in its socket until it wakes, when another one has decided: it must not, too."""
    with tellers_at_work(scene) as tellers:
        sleeper = _coordinator(scene)
        sleeper.pause()
        until("its session is over", lambda: sleeper.id not in scene.cluster.registered())
        tellers.progress()
        sleeper.resume()


def a_transaction_coordinator_is_cut_off_and_killed(scene: Scene) -> None:
    """It accepts what it cannot commit; what it decided alone dies with it, and another one decides."""
    with tellers_at_work(scene) as tellers:
        victim = _coordinator(scene)
        cut_from_brokers(scene, victim)
        wait(CUT_S)
        victim.kill()
        mend(scene)
        tellers.progress()
        victim.start()


def a_leader_is_killed_that_markers_wait_for(scene: Scene) -> None:
    """The outcome is decided, too few replicas are in sync for the markers, and then the leader dies.

    The target needs all three replicas for a write, and the log of the coordinator needs only two.
    """
    cluster = scene.cluster
    with tellers_at_work(scene, min_insync_replicas=str(REPLICAS)) as tellers:
        producer, transfer = tellers.open("waits-for-markers")
        leader, follower = cluster.leader(TARGET, 0), cluster.follower(TARGET, 0)
        follower.kill()
        producer.commit_transaction(PATIENCE_S)
        transfer.committed = True
        until(
            "the markers of a committed transaction wait",
            lambda: (unfinished(cluster) or {}).get("waits-for-markers") == "PrepareCommit",
        )
        leader.kill()
        cluster.start()


def all_are_killed_with_open_transactions(scene: Scene) -> None:
    """What nobody ends is aborted by whoever coordinates when all are back; no reader waits for it."""
    with tellers_at_work(scene) as tellers:
        kept = [tellers.open(f"open-{number}") for number in range(OPEN)]
        for broker in scene.cluster.brokers.values():
            broker.kill()
        scene.cluster.start()
        tellers.progress()
        for producer, _ in kept:  # until now: they must not say goodbye
            producer.purge()


def a_transaction_coordinator_is_drained(scene: Scene) -> None:
    """A fourth broker takes over everything that a coordinator has, while transactions go on."""
    with tellers_at_work(scene) as tellers:
        scene.cluster.add().start()
        leaver = _coordinator(scene)
        drained = Command(scene.cluster.bootstrap)("cluster", "drain", str(leaver.id), "--wait")
        assert drained.status == 0, drained
        tellers.progress()
