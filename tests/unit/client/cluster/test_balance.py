"""How the replicas of a node are spread over its brokers."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headrace.client.cluster.balance import balance
from headrace.client.cluster.moves import Move
from headrace.client.cluster.status import PartitionState

NODE = (1, 2, 3)
OTHERS = (7, 8, 9)


def partition(index: int, *replicas: int, topic: str = "orders", leader: int | None = 0) -> PartitionState:
    return PartitionState(
        topic=topic,
        partition=index,
        leader=replicas[0] if leader == 0 else leader,
        replicas=replicas,
        in_sync=replicas,
    )


def after(partitions: list[PartitionState], moves: list[Move]) -> list[tuple[int, ...]]:
    """Return the replicas of each partition when the moves are complete."""
    moved = {move.topic_partition: move.replicas for move in moves}
    return [moved.get(each.topic_partition, each.replicas) for each in partitions]


def test_half_of_the_partitions_of_a_lone_broker_move_to_a_second_one() -> None:
    partitions = [partition(index, 1) for index in range(6)]
    moves = balance([1, 2], partitions)
    assert Counter(move.replicas for move in moves) == {(2,): 3}


def test_an_even_node_stays_as_it_is() -> None:
    assert balance([1, 2], [partition(0, 1), partition(1, 2), partition(2, 1)]) == []


def test_replicas_of_other_nodes_stay() -> None:
    moves = balance([1, 2], [partition(0, 1, 7), partition(1, 8, 1), partition(2, 1, 8), partition(3, 7, 1)])
    assert all(set(move.replicas) & set(OTHERS) for move in moves)
    assert len(moves) == 2


def test_every_topic_is_spread() -> None:
    partitions = [partition(index, 1, topic=topic) for topic in ("a", "b") for index in range(4)]
    moves = balance([1, 2], partitions)
    assert Counter(move.topic for move in moves) == {"a": 2, "b": 2}


def test_two_replicas_of_a_partition_never_share_a_broker() -> None:
    partitions = [partition(index, 1, 2) for index in range(6)]
    for replicas in after(partitions, balance([1, 2, 3], partitions)):
        assert len(set(replicas)) == 2


def test_a_partition_without_a_leader_stays() -> None:
    assert balance([1, 2], [partition(0, 1, leader=None), partition(1, 1, leader=None)]) == []


def test_a_node_with_one_broker_has_nothing_to_spread() -> None:
    assert balance([1], [partition(index, 1) for index in range(3)]) == []


@given(st.lists(st.tuples(st.sampled_from(NODE), st.sampled_from(OTHERS), st.booleans()), max_size=40))
def test_replicas_and_leaders_are_even_and_no_more_than_needed_moves(
    choices: list[tuple[int, int, bool]],
) -> None:
    partitions = [
        partition(index, *((here, there) if leads else (there, here)))
        for index, (here, there, leads) in enumerate(choices)
    ]
    moves = balance(NODE, partitions)
    replicas = after(partitions, moves)
    leads = [sum(each[0] == broker for each in replicas) for broker in NODE]
    holds = [sum(broker in each for each in replicas) for broker in NODE]
    assert max(leads) - min(leads) <= 1
    assert max(holds) - min(holds) <= 1
    assert balance(NODE, [partition(index, *each) for index, each in enumerate(replicas)]) == []
    assert len(moves) <= _excess(partitions, leaders=True) + _excess(partitions, leaders=False) + len(NODE)


def _excess(partitions: list[PartitionState], *, leaders: bool) -> int:
    """Return how many replicas the brokers have above the smallest even share, leaders or the others."""
    counts = sorted(
        (sum(broker in each.replicas and (each.replicas[0] == broker) == leaders for each in partitions))
        for broker in NODE
    )
    share, rest = divmod(sum(counts), len(NODE))
    shares = [share] * (len(NODE) - rest) + [share + 1] * rest
    return sum(max(0, count - fair) for count, fair in zip(counts, shares, strict=True))
