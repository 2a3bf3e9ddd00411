"""Where the replicas of a broker go that is to have none."""

from collections import Counter

import pytest

from headrace.client.cluster.drain import drain
from headrace.client.cluster.moves import Move
from headrace.client.cluster.status import PartitionState
from headrace.client.errors import ClientError
from headrace.protocol.locations import Location


def partition(index: int, *replicas: int, leader: int | None = 0, topic: str = "orders") -> PartitionState:
    return PartitionState(
        topic=topic,
        partition=index,
        leader=replicas[0] if leader == 0 else leader,
        replicas=replicas,
        in_sync=replicas,
    )


def racks(**names: str) -> dict[int, Location]:
    """`racks(b1="east", b2="west")` by broker."""
    return {int(broker[1:]): Location(rack) for broker, rack in names.items()}


def alone(*brokers: int) -> dict[int, Location]:
    return {each: Location() for each in brokers}


def test_the_new_replica_takes_the_place_of_the_old_one() -> None:
    moves = drain([3], [partition(0, 1, 3), partition(1, 3, 2)], alone(1, 2, 3))
    assert moves == [
        Move(topic="orders", partition=0, replicas=(1, 2)),
        Move(topic="orders", partition=1, replicas=(1, 2)),
    ]


def test_what_is_not_on_the_broker_stays() -> None:
    assert drain([3], [partition(0, 1, 2)], alone(1, 2, 3)) == []


def test_replicas_are_spread_evenly() -> None:
    partitions = [partition(index, 4) for index in range(9)]
    moves = drain([4], partitions, alone(1, 2, 3, 4))
    assert Counter(move.replicas for move in moves) == {(1,): 3, (2,): 3, (3,): 3}


def test_who_has_the_fewest_partitions_gets_the_next() -> None:
    partitions = [partition(0, 1), partition(1, 1), partition(2, 2), partition(3, 3, 1)]
    (move,) = drain([3], partitions, alone(1, 2, 3))
    assert move.replicas == (2, 1)


def test_what_the_broker_was_to_lead_is_spread_by_who_is_to_lead_little() -> None:
    partitions = [partition(0, 1, 3), partition(1, 1, 3), partition(2, 2, 1), partition(3, 4, 3)]
    moves = drain([4], partitions, alone(1, 2, 3, 4))
    assert moves[0].replicas == (2, 3), "broker 2 is to lead one partition, broker 1 two"


def test_another_rack_comes_before_a_broker_with_less() -> None:
    brokers = racks(b1="east", b2="east", b3="west", b4="west")
    busy = [partition(index, 4, topic="others") for index in range(5)]
    (move,) = drain([3], [partition(0, 1, 3), *busy], brokers)
    assert move.replicas == (1, 4), "broker 2 has nothing, but is in the rack of broker 1"


def test_a_rack_is_used_twice_if_there_is_no_other() -> None:
    (move,) = drain([3], [partition(0, 1, 3)], racks(b1="east", b2="east", b3="west"))
    assert move.replicas == (1, 2)


def test_a_broker_that_is_down_can_be_drained() -> None:
    (move,) = drain([3], [partition(0, 3, 1, leader=1)], alone(1, 2))
    assert move.replicas == (2, 1)


def test_too_few_brokers_are_refused() -> None:
    with pytest.raises(ClientError, match="orders-0 has 2 replicas, and besides broker 2 only 1 is alive"):
        drain([2], [partition(0, 1, 2)], alone(1, 2))
    with pytest.raises(ClientError, match="orders-0 has 1 replica, and besides broker 1 no broker is alive"):
        drain([1], [partition(0, 1)], alone(1))


def test_a_partition_that_nobody_can_copy_is_refused() -> None:
    with pytest.raises(ClientError, match="orders-0 has no leader to copy its replica"):
        drain([3], [partition(0, 3, leader=None)], alone(1, 2))


def on_nodes(**names: str) -> dict[int, Location]:
    """`on_nodes(b1="m1", b2="m1")` by broker."""
    return {int(broker[1:]): Location(node=node) for broker, node in names.items()}


def test_another_node_comes_before_a_broker_with_less() -> None:
    brokers = on_nodes(b1="m1", b2="m1", b11="m2", b12="m2")
    busy = [partition(index, 12, topic="others") for index in range(5)]
    (move,) = drain([11], [partition(0, 1, 11), *busy], brokers)
    assert move.replicas == (1, 12), "broker 2 has nothing, but is on the node of broker 1"


def test_another_rack_comes_before_another_node() -> None:
    brokers = {1: Location("a", "m1"), 2: Location("a", "m2"), 3: Location("b", "m3"), 4: Location("b", "m3")}
    (move,) = drain([3], [partition(0, 1, 3), partition(1, 4), partition(2, 4)], brokers)
    assert move.replicas == (1, 4)


def test_all_brokers_of_a_node_are_drained_to_other_nodes() -> None:
    brokers = on_nodes(b1="m1", b2="m1", b11="m2", b12="m2", b21="m3", b22="m3")
    partitions = [partition(0, 1, 11), partition(1, 12, 2), partition(2, 2, 21), partition(3, 1, 2)]

    moves = {move.partition: move.replicas for move in drain([1, 2], partitions, brokers)}

    assert moves[0][0] in {21, 22}
    assert moves[1][1] in {21, 22}
    assert moves[2][0] in {11, 12}
    assert {brokers[each].node for each in moves[3]} == {"m2", "m3"}, "both replicas were on the node"


def test_a_node_cannot_be_drained_if_its_partitions_need_it() -> None:
    with pytest.raises(ClientError, match="besides brokers 1, 2 only 1 is alive"):
        drain([1, 2], [partition(0, 1, 2)], on_nodes(b1="m1", b2="m1", b11="m2"))
