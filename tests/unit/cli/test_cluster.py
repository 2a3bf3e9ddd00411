"""How a cluster looks on a terminal of 80 columns."""

from dataclasses import replace

from headrace.cli.cluster import draw_elections, draw_moves, draw_status
from headrace.cli.support import output
from headrace.client.cluster.cluster import Election
from headrace.client.cluster.moves import Move, Reassignment
from headrace.client.cluster.status import SILENT, UP, Broker, PartitionState, cluster_status


def lines(drawn: output.Drawable) -> list[str]:
    return [line for line in output.lines(drawn, 80) if line]


def partition(
    index: int, leader: int | None, replicas: tuple[int, ...], in_sync: tuple[int, ...], *, least: int = 1
) -> PartitionState:
    return PartitionState(
        topic="orders", partition=index, leader=leader, replicas=replicas, in_sync=in_sync, min_in_sync=least
    )


NODES = [
    Broker(id=1, host="127.0.0.1", port=9092, rack="a", state=UP, pid=101),
    Broker(id=2, host="127.0.0.1", port=9093, rack=None, state=SILENT, pid=None),
]


def test_a_sick_partition_is_shown_once_with_the_worst_of_it() -> None:
    status = cluster_status(
        cluster_id="X1",
        controller=1,
        nodes=NODES,
        partitions=[
            partition(0, 1, (1, 2), (1, 2)),
            partition(1, 1, (1, 3), (1,), least=2),
            partition(2, 1, (1, 3), (1,)),
            partition(3, None, (3,), (3,)),
            partition(4, None, (1, 3), (3,)),
        ],
    )
    assert lines(draw_status(status)) == [
        "cluster X1: 3 brokers, controller 1, 1 topic, 5 partitions",
        "broker  address         rack  state           pid  leads  follows",
        "     1  127.0.0.1:9092  a     up, controller  101      3        1",
        "     2  127.0.0.1:9093  -     silent            -      0        1",
        "     3  -               -     down              -      0        4",
        "partition  leader  replicas  in sync  state",
        "orders-3        -  3               3  offline: waits for 3",
        "orders-4        -  1,3             3  leaderless: waits for 3",
        "orders-1        1  1,3             1  under min ISR: 1 of 2",
        "orders-2        1  1,3             1  under-replicated: lacks 3",
        "of 5 partitions: 1 offline, 1 leaderless, 1 under min ISR, 4 under-replicated",
    ]


def test_a_healthy_cluster_says_so_and_what_moves() -> None:
    moving = Reassignment(topic="orders", partition=0, replicas=(2, 1), adding=(2,), removing=(1,))
    status = cluster_status(
        cluster_id=None,
        controller=None,
        nodes=NODES,
        partitions=[partition(0, 1, (2, 1), (1,)), partition(1, 1, (2, 1), (2, 1))],
        reassignments=[moving],
    )
    drawn = lines(draw_status(status))
    assert drawn[0] == "cluster -: 2 brokers, no controller, 1 topic, 2 partitions"
    assert drawn[4:] == [
        "moving    to  new  old",
        "orders-0   2    2    1",
        "every partition has all its replicas in sync",
        "1 partition not led by the preferred replica (`headrace cluster elect`)",
        "1 partition moving to other brokers",
    ]


def test_moves_and_elections_are_lines() -> None:
    move = Move(topic="orders", partition=0, replicas=(2, 3))
    assert lines(draw_moves([move], {move.topic_partition: (1, 2)})) == [
        "partition  from  to",
        "orders-0   1,2   2,3",
    ]
    elections = [
        Election(topic="orders", partition=0, leader=2, needed=True),
        Election(topic="orders", partition=1, leader=1, needed=False),
        Election(topic="orders", partition=2, leader=None, needed=True, refused="no replica is alive"),
    ]
    assert lines(draw_elections(elections)) == [
        "partition  leader  outcome",
        "orders-0        2  elected",
        "orders-1        1  leads already",
        "orders-2        -  no replica is alive",
    ]


def test_brokers_that_share_nodes_have_a_column_for_them() -> None:
    status = cluster_status(
        cluster_id="X1",
        controller=1,
        nodes=[replace(each, state=UP, node="m1") for each in NODES] + [Broker(id=11, state=UP, node="m2")],
        partitions=[partition(0, 1, (1, 2), (1, 2))],
    )
    drawn = lines(draw_status(status))
    assert drawn[1:3] == [
        "broker  address         rack  node  state           pid  leads  follows",
        "     1  127.0.0.1:9092  a     m1    up, controller  101      1        0",
    ]
    assert drawn[-2].startswith("1 partition with replicas that share a node although another has none")
