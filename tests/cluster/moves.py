"""Brokers that come to stay and leave for good, under load; leaders that return to where they belong."""

from collections.abc import Mapping, Sequence
from typing import Final

from cli.command import Command
from cluster.cluster import Cluster
from cluster.stage import Scene
from cluster.waiting import until
from cluster.workload import PARTITIONS, TOPIC
from headrace.protocol.schema.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.raw import RawClient

ROUNDS: Final = 5
NODE: Final = {"headrace.node": "n"}
PREFERRED: Final = {
    "leader.imbalance.check.interval.seconds": "1",
    "leader.imbalance.per.broker.percentage": "0",
}


def a_broker_joins_and_another_is_drained(scene: Scene) -> None:
    """A fourth broker takes over every replica of the first, which then has none left, and stops."""
    cluster = scene.cluster
    new = cluster.add()
    new.start()
    leaver = cluster.brokers[1]
    drained = Command(cluster.bootstrap)("cluster", "drain", str(leaver.id), "--wait")
    assert drained.status == 0, drained
    scene.workload.progress()
    until(
        "the drained broker has no replica left",
        lambda: not any(each.is_dir() for each in leaver.log_dir.iterdir()),
    )
    leaver.stop()
    scene.workload.progress()


def a_broker_that_takes_replicas_over_is_killed(scene: Scene) -> None:
    """The move waits for it and is completed when it is back."""
    cluster = scene.cluster
    new = cluster.add()
    new.start()
    wanted = {index: [new.id, 2, 3] for index in range(PARTITIONS)}
    _begin_move(cluster, TOPIC, wanted)
    new.kill()
    scene.workload.progress()
    new.start()
    _await_move(cluster, TOPIC, wanted)


def a_controller_that_moves_replicas_is_killed(scene: Scene) -> None:
    """The next controller goes on with what it finds."""
    cluster = scene.cluster
    new = cluster.add()
    new.start()
    controller = cluster.controller()
    kept = [each.id for each in cluster.brokers.values() if each not in {new, controller}]
    wanted = {index: [new.id, *kept] for index in range(PARTITIONS)}
    _begin_move(cluster, TOPIC, wanted)
    controller.kill()
    _await_move(cluster, TOPIC, wanted)
    scene.workload.progress()


def replicas_move_to_and_fro(scene: Scene) -> None:
    """Away from a broker and back, again and again: each time it begins with an empty log."""
    cluster = scene.cluster
    new = cluster.add()
    new.start()
    for number in range(2 * ROUNDS):
        first = 1 if number % 2 else new.id
        wanted = {index: [first, 2, 3] if index % 2 else [2, first, 3] for index in range(PARTITIONS)}
        _begin_move(cluster, TOPIC, wanted)
        _await_move(cluster, TOPIC, wanted)
    scene.workload.progress()


def replicas_move_within_a_node(scene: Scene) -> None:
    """The same among brokers of one node: each time it begins with links to another broker's segments."""
    replicas_move_to_and_fro(scene)
    log = scene.cluster.brokers[max(scene.cluster.brokers)].log.read_text()
    scene.figures["seeded"] = log.count(" is seeded from broker ")


def a_broker_of_a_node_that_takes_replicas_over_is_killed(scene: Scene) -> None:
    a_broker_that_takes_replicas_over_is_killed(scene)


def the_preferred_leader_returns(scene: Scene) -> None:
    """A broker that was away leads again what it is the first choice for."""
    leader = scene.cluster.leader(TOPIC, 0)
    leader.kill()
    scene.workload.progress()
    leader.start()
    until("preferred replicas lead", lambda: not _astray(scene.cluster))
    scene.workload.progress()


def _astray(cluster: Cluster) -> list[str]:
    return [
        f"{topic}-{index}"
        for topic in cluster.topics()
        for index, replicas in cluster.assignment(topic).replicas.items()
        if cluster.state(topic, index).leader != replicas[0]
    ]


def _begin_move(cluster: Cluster, topic: str, wanted: Mapping[int, Sequence[int]]) -> None:
    partitions = [ReassignablePartition(partition_index=each, replicas=wanted[each]) for each in wanted]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=partitions)], timeout_ms=10_000
    )
    with RawClient(cluster.controller().bootstrap) as client:
        answer = client.ask(request, 0)
    refused = [each for found in answer.responses for each in found.partitions if each.error_code]
    assert answer.error_code == 0, answer
    assert not refused, refused


def _await_move(cluster: Cluster, topic: str, wanted: Mapping[int, Sequence[int]]) -> None:
    def arrived() -> bool:
        now = cluster.assignment(topic)
        return now.replicas == {each: tuple(found) for each, found in wanted.items()} and not now.adding

    until(f"{topic} has moved to {wanted}", arrived)
