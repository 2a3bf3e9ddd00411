"""Which partitions an event of a broker concerns."""

from dataclasses import replace

from headrace.protocol.ids import TopicPartition
from headrace.replication.controller.partition_index import PartitionIndex
from headrace.replication.election import NO_LEADER, Partition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
ON_THREE = Partition(replicas=(1, 2, 3), leader=1, leader_epoch=0, isr=(1, 2))


def indexed(**partitions: Partition) -> PartitionIndex:
    index = PartitionIndex()
    for topic, partition in partitions.items():
        index.add(TopicPartition(topic, 0), partition)
    return index


def on(index: PartitionIndex, broker_id: int) -> list[TopicPartition]:
    return list(index.on(broker_id))


def test_a_partition_is_found_by_each_of_its_replicas() -> None:
    index = indexed(a=ON_THREE, b=replace(ON_THREE, replicas=(2, 4), leader=2, isr=(2, 4)))

    assert [on(index, each) for each in (1, 2, 3, 4, 5)] == [[A], [A, B], [A], [B], []]


def test_a_partition_without_a_leader_is_found_by_its_replicas_alone() -> None:
    assert on(indexed(a=replace(ON_THREE, leader=NO_LEADER)), NO_LEADER) == []


def test_a_leader_that_the_assignment_does_not_name_is_found_too() -> None:
    """A controller may have stopped between writing the state and writing the assignment."""
    assert on(indexed(a=replace(ON_THREE, leader=9, isr=(9, 1))), 9) == [A]


def test_a_partition_that_moves_is_found_by_its_new_replicas() -> None:
    index = indexed(a=ON_THREE)
    moving = replace(ON_THREE, replicas=(4, 1, 2, 3), adding=(4,), removing=(3,))
    index.replace(A, ON_THREE, moving)
    assert (on(index, 4), list(index.moving)) == ([A], [A])

    index.replace(A, moving, replace(ON_THREE, replicas=(4, 1, 2), isr=(4, 1, 2)))
    assert (on(index, 3), on(index, 4), list(index.moving)) == ([], [A], [])


def test_a_new_leader_leaves_the_index_as_it_is() -> None:
    index = indexed(a=ON_THREE, b=ON_THREE)
    index.replace(A, ON_THREE, replace(ON_THREE, leader=2, isr=(2,)))

    assert on(index, 1) == [A, B]


def test_a_deleted_partition_is_not_found() -> None:
    index = indexed(a=ON_THREE, b=ON_THREE)
    index.discard(A, ON_THREE)

    assert on(index, 1) == [B]
