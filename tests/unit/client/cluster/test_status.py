"""What state a cluster is in, by what its brokers have answered."""

from headrace.client.cluster.moves import Reassignment
from headrace.client.cluster.status import (
    SILENT,
    UP,
    Broker,
    ClusterStatus,
    PartitionState,
    cluster_status,
    not_ready,
)
from headrace.protocol.ids import TopicPartition


def node(broker_id: int, *, answers: bool = True) -> Broker:
    return Broker(
        id=broker_id,
        host="host",
        port=9092,
        rack=None,
        state=UP if answers else SILENT,
        pid=1000 + broker_id if answers else None,
    )


def partition(
    index: int, leader: int | None, replicas: tuple[int, ...], in_sync: tuple[int, ...], *, least: int = 1
) -> PartitionState:
    return PartitionState(
        topic="orders", partition=index, leader=leader, replicas=replicas, in_sync=in_sync, min_in_sync=least
    )


def status(
    nodes: list[Broker], *partitions: PartitionState, reassignments: tuple[Reassignment, ...] = ()
) -> ClusterStatus:
    return cluster_status(
        cluster_id="id", controller=1, nodes=nodes, partitions=partitions, reassignments=reassignments
    )


def indexes(partitions: tuple[PartitionState, ...]) -> list[int]:
    return [each.partition for each in partitions]


def test_a_cluster_with_all_replicas_in_sync_is_healthy() -> None:
    found = status([node(1), node(2)], partition(0, 1, (1, 2), (1, 2)))
    assert found.is_healthy
    assert [(each.id, each.leads, each.follows) for each in found.brokers] == [(1, 1, 0), (2, 0, 1)]


def test_a_broker_is_down_if_only_its_replicas_speak_of_it() -> None:
    found = status([node(1, answers=False)], partition(0, 1, (1, 3), (1,)))
    assert [(each.id, each.state, each.pid) for each in found.brokers] == [
        (1, "silent", None),
        (3, "down", None),
    ]
    assert not found.is_healthy


def test_nobody_leads_an_offline_or_a_leaderless_partition() -> None:
    found = status([node(1)], partition(0, None, (2, 3), (2,)), partition(1, None, (1, 2), (2,)))
    assert (indexes(found.offline), indexes(found.leaderless)) == ([0], [1])
    assert indexes(found.under_replicated) == [0, 1], "what is in sync and down is of no use"


def test_too_few_in_sync_are_counted_against_what_the_topic_wants() -> None:
    nodes = [node(1), node(2), node(3)]
    found = status(
        nodes, partition(0, 1, (1, 2, 3), (1,), least=2), partition(1, 1, (1, 2, 3), (1, 2), least=2)
    )
    assert indexes(found.under_min_isr) == [0]
    assert indexes(found.under_replicated) == [0, 1]


def test_a_replica_on_its_way_need_not_be_in_sync_yet() -> None:
    moving = Reassignment(topic="orders", partition=0, replicas=(3, 1, 2), adding=(3,), removing=(2,))
    nodes = [node(1), node(2), node(3)]
    found = status(nodes, partition(0, 1, (3, 1, 2), (1, 2)), reassignments=(moving,))
    assert found.under_replicated == ()
    assert found.is_healthy


def test_a_partition_is_preferably_led_by_its_first_replica() -> None:
    found = status(
        [node(1), node(2)],
        partition(0, 2, (1, 2), (1, 2)),
        partition(1, 2, (2, 1), (1, 2)),
        partition(2, 2, (1, 2), (2,)),
        partition(3, 2, (9, 2), (9, 2)),
    )
    assert [each.topic_partition for each in found.not_preferred] == [TopicPartition("orders", 0)], (
        "the others cannot lead"
    )


def test_replicas_share_a_node_if_another_node_has_none() -> None:
    def on(broker_id: int, node: str | None) -> Broker:
        return Broker(id=broker_id, state=UP, node=node)

    def placed(index: int, *replicas: int) -> PartitionState:
        return PartitionState(
            topic="orders", partition=index, leader=replicas[0], replicas=replicas, in_sync=replicas
        )

    partitions = [placed(0, 1, 2), placed(1, 1, 11), placed(2, 1, 2, 11), placed(3, 1), placed(4, 1, 2, 9)]
    two = [on(1, "m1"), on(2, "m1"), on(11, "m2")]

    def sharing(*nodes: Broker) -> list[int]:
        found = cluster_status(cluster_id=None, controller=1, nodes=nodes, partitions=partitions)
        return [each.partition for each in found.sharing_node]

    assert sharing(*two) == [0]
    assert sharing(*two, on(21, None)) == [0, 2, 4], "a broker without a node is one of its own"
    assert sharing(on(1, None), on(2, None), on(11, None)) == []


def test_a_broker_is_ready_when_its_own_replicas_are_in_sync() -> None:
    status = cluster_status(
        cluster_id="X1",
        controller=1,
        nodes=[node(1), node(2), node(3, answers=False)],
        partitions=[partition(0, 1, (1, 2), (1,)), partition(1, 1, (1, 4), (1,))],
    )
    assert not_ready(status, 1) is None
    assert not_ready(status, 2) == "1 of its replicas are not in sync, the first is orders-0"
    assert not_ready(status, 3) == "it is silent"
    assert not_ready(status, 4) == "it is down"
    assert not_ready(status, 5) == "it is not registered"
