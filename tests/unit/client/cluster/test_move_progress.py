"""How far reassignments are."""

from headrace.client.cluster.log_dirs import progress_of
from headrace.client.cluster.moves import Reassignment
from headrace.protocol.ids import TopicPartition

PLACE = TopicPartition("orders", 0)


def moving(adding: tuple[int, ...]) -> Reassignment:
    return Reassignment(topic="orders", partition=0, replicas=(1, *adding), adding=adding, removing=(1,))


def test_progress_is_the_share_of_bytes_that_new_replicas_have() -> None:
    taken = {
        (1, PLACE): 100,
        (2, PLACE): 40,
        (3, PLACE): 130,
    }  # more than the leader: it has just been cleaned
    (found,) = progress_of([moving((2, 3))], {PLACE: 1}, taken, {1, 2, 3})
    assert (found.copied_bytes, found.total_bytes, found.share) == (140, 200, 0.7)


def test_a_replica_that_is_not_there_yet_has_copied_nothing() -> None:
    (found,) = progress_of([moving((2,))], {PLACE: 1}, {(1, PLACE): 100}, {1, 2})
    assert found.share == 0


def test_progress_is_unknown_while_a_broker_does_not_answer_or_there_is_no_leader() -> None:
    for leader, answered in ((1, {1}), (1, {2}), (None, {1, 2})):
        (found,) = progress_of([moving((2,))], {PLACE: leader}, {(1, PLACE): 100}, answered)
        assert (found.copied_bytes, found.total_bytes, found.share) == (None, None, None)


def test_an_empty_partition_is_copied_at_once() -> None:
    (found,) = progress_of([moving((2,))], {PLACE: 1}, {}, {1, 2})
    assert found.share == 1
