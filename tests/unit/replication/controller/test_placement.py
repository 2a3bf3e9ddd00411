from collections import Counter
from collections.abc import Mapping

import pytest

from headrace.broker.slices import at_once
from headrace.protocol.kafka_errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
)
from headrace.protocol.locations import Location, Locations
from headrace.replication.controller.placement import (
    MAX_PARTITIONS,
    Placed,
    check_assignment,
    extended,
    spread,
)


def placed_on(partitions: int, replicas: int, brokers: Locations, *, start: int) -> Placed:
    return at_once(spread(partitions, replicas, brokers, start=start))


def test_placement_can_be_interrupted_before_each_partition() -> None:
    assert len(list(spread(5, 2, alone(1, 2, 3), start=0))) == 5


def test_replicas_go_round_the_brokers() -> None:
    assert placed_on(3, 2, alone(1, 2, 3), start=0) == {0: (1, 2), 1: (2, 3), 2: (3, 1)}


def test_no_broker_gets_two_replicas_of_a_partition_and_leaders_are_spread_evenly() -> None:
    for start in range(5):
        placed = placed_on(10, 3, alone(1, 2, 3, 4, 5), start=start)

        assert all(len(set(replicas)) == 3 for replicas in placed.values())
        leaders = [replicas[0] for replicas in placed.values()]
        assert {leaders.count(broker) for broker in range(1, 6)} == {2}


@pytest.mark.parametrize("count", [0, -2, MAX_PARTITIONS + 1])
def test_a_number_of_partitions_that_makes_no_sense_is_refused(count: int) -> None:
    with pytest.raises(InvalidPartitions):
        placed_on(count, 1, alone(1), start=0)


@pytest.mark.parametrize("replicas", [0, -2, 3])
def test_more_replicas_than_brokers_are_refused(replicas: int) -> None:
    with pytest.raises(InvalidReplicationFactor):
        placed_on(1, replicas, alone(1, 2), start=0)


@pytest.mark.parametrize(
    "assignment", [{0: [1], 2: [1]}, {1: [1]}, {0: []}, {0: [1, 1]}, {0: [9]}, {0: [1, 2], 1: [1]}]
)
def test_a_manual_assignment_with_a_hole_or_a_stranger_is_refused(assignment: dict[int, list[int]]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        check_assignment(assignment, [1, 2, 3])


def test_a_sound_manual_assignment_is_accepted_from_any_first_partition() -> None:
    check_assignment({0: [1, 2], 1: [2, 3]}, [1, 2, 3])
    check_assignment({4: [3]}, [1, 2, 3], first=4)


def test_every_rack_gets_a_replica_before_any_gets_a_second() -> None:
    brokers = in_racks({1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"})
    for replicas in placed(brokers, partitions=24, replicas=3):
        assert {brokers[each].rack for each in replicas} == {"a", "b", "c"}


def test_racks_that_are_fewer_than_replicas_get_several() -> None:
    brokers = in_racks({1: "a", 2: "a", 3: "a", 4: "b"})
    for replicas in placed(brokers, partitions=8, replicas=3):
        assert len(set(replicas)) == 3
        assert {brokers[each].rack for each in replicas} == {"a", "b"}


def test_leaders_and_followers_are_spread_evenly() -> None:
    found = placed(alone(1, 2, 3, 4), partitions=24, replicas=2)

    assert Counter(replicas[0] for replicas in found) == dict.fromkeys(range(1, 5), 6)
    assert Counter(replicas[1] for replicas in found) == dict.fromkeys(range(1, 5), 6)
    assert len({frozenset(replicas) for replicas in found}) == 6  # every pair of brokers shares something


def test_replicas_are_on_different_nodes_and_every_broker_leads() -> None:
    brokers = {each: Location(node="east" if each < 20 else "west") for each in (10, 11, 12, 20, 21, 22)}

    found = placed(brokers, partitions=12, replicas=2)

    assert all(brokers[first].node != brokers[second].node for first, second in found)
    assert Counter(replicas[0] for replicas in found) == dict.fromkeys(brokers, 2)
    assert Counter(replicas[1] for replicas in found) == dict.fromkeys(brokers, 2)


def test_a_node_gets_a_second_replica_if_there_are_no_more_nodes() -> None:
    brokers = {1: Location(node="east"), 2: Location(node="east"), 3: Location(node="west")}
    for replicas in placed(brokers, partitions=6, replicas=3):
        assert sorted(replicas) == [1, 2, 3]
    for replicas in placed(brokers, partitions=6, replicas=2):
        assert 3 in replicas


def test_a_new_rack_comes_before_a_new_node() -> None:
    brokers = {
        1: Location("a", "east"),
        2: Location("a", "east"),
        3: Location("a", "north"),
        4: Location("b", "west"),
    }
    for replicas in placed(brokers, partitions=8, replicas=2):
        assert 4 in replicas
    for replicas in placed(brokers, partitions=8, replicas=3):
        assert {brokers[each].node for each in replicas} == {"east", "north", "west"}


def test_a_partition_is_extended_to_a_new_rack_then_to_a_new_node_then_to_a_broker_with_few_replicas() -> (
    None
):
    brokers = {
        1: Location("a", "east"),
        2: Location("a", "east"),
        3: Location("a", "north"),
        4: Location("b", "west"),
        5: Location("b", "west"),
    }
    loads = {1: 9, 3: 9, 4: 9, 5: 8}

    assert extended([1], 2, brokers, candidates=brokers, loads=loads) == (1, 5)
    assert extended([1], 3, brokers, candidates=brokers, loads=loads) == (1, 5, 3)
    assert extended([1], 4, brokers, candidates=brokers, loads=loads) == (1, 5, 3, 2)
    assert extended([1], 3, brokers, candidates={2, 5}, loads=loads) == (1, 5, 2)
    assert extended([9], 2, brokers, candidates={2}, loads=loads) == (9, 2), "broker 9 is not alive"


def alone(*brokers: int) -> dict[int, Location]:
    return {each: Location() for each in brokers}


def in_racks(racks: Mapping[int, str]) -> dict[int, Location]:
    return {each: Location(rack) for each, rack in racks.items()}


def placed(brokers: Locations, *, partitions: int, replicas: int) -> list[tuple[int, ...]]:
    return list(placed_on(partitions, replicas, brokers, start=0).values())
