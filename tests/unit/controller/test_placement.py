from collections import Counter
from collections.abc import Mapping

import pytest

from headrace.controller.errors import InvalidPartitions, InvalidReplicaAssignment, InvalidReplicationFactor
from headrace.controller.placement import MAX_PARTITIONS, check_assignment, spread


def test_replicas_go_round_the_brokers() -> None:
    assert spread(3, 2, dict.fromkeys([1, 2, 3]), start=0) == {0: (1, 2), 1: (2, 3), 2: (3, 1)}


def test_no_broker_gets_two_replicas_of_a_partition_and_leaders_are_spread_evenly() -> None:
    for start in range(5):
        placed = spread(10, 3, dict.fromkeys([1, 2, 3, 4, 5]), start=start)

        assert all(len(set(replicas)) == 3 for replicas in placed.values())
        leaders = [replicas[0] for replicas in placed.values()]
        assert {leaders.count(broker) for broker in dict.fromkeys([1, 2, 3, 4, 5])} == {2}


@pytest.mark.parametrize("count", [0, -2, MAX_PARTITIONS + 1])
def test_a_number_of_partitions_that_makes_no_sense_is_refused(count: int) -> None:
    with pytest.raises(InvalidPartitions):
        spread(count, 1, {1: None}, start=0)


@pytest.mark.parametrize("replicas", [0, -2, 3])
def test_more_replicas_than_brokers_are_refused(replicas: int) -> None:
    with pytest.raises(InvalidReplicationFactor):
        spread(1, replicas, {1: None, 2: None}, start=0)


@pytest.mark.parametrize(
    "assignment",
    [
        {0: [1], 2: [1]},
        {1: [1]},
        {0: []},
        {0: [1, 1]},
        {0: [9]},
        {0: [1, 2], 1: [1]},
    ],
)
def test_a_manual_assignment_with_a_hole_or_a_stranger_is_refused(assignment: dict[int, list[int]]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        check_assignment(assignment, [1, 2, 3])


def test_a_sound_manual_assignment_is_accepted_from_any_first_partition() -> None:
    check_assignment({0: [1, 2], 1: [2, 3]}, [1, 2, 3])
    check_assignment({4: [3]}, [1, 2, 3], first=4)


def test_every_rack_gets_a_replica_before_any_gets_a_second() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    for replicas in placed(racks, partitions=24, replicas=3):
        assert {racks[each] for each in replicas} == {"a", "b", "c"}


def test_racks_that_are_fewer_than_replicas_get_several() -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b"}
    for replicas in placed(racks, partitions=8, replicas=3):
        assert len(set(replicas)) == 3
        assert {racks[each] for each in replicas} == {"a", "b"}


def test_leaders_and_followers_are_spread_evenly() -> None:
    found = placed(dict.fromkeys(range(1, 5)), partitions=24, replicas=2)

    assert Counter(replicas[0] for replicas in found) == dict.fromkeys(range(1, 5), 6)
    assert Counter(replicas[1] for replicas in found) == dict.fromkeys(range(1, 5), 6)
    assert len({frozenset(replicas) for replicas in found}) == 6  # every pair of brokers shares something


def placed(racks: Mapping[int, str | None], *, partitions: int, replicas: int) -> list[tuple[int, ...]]:
    return list(spread(partitions, replicas, racks, start=0).values())
