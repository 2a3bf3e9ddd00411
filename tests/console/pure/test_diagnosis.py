"""What is wrong with a topic's partitions, and what to do."""

from headrace.client.cluster.status import PartitionState
from headrace.gateway.console.diagnosis import diagnose


def partition(
    index: int, leader: int | None, replicas: tuple[int, ...], in_sync: tuple[int, ...], least: int = 1
) -> PartitionState:
    return PartitionState(
        topic="orders", partition=index, leader=leader, replicas=replicas, in_sync=in_sync, min_in_sync=least
    )


def test_an_offline_partition_names_the_missing_broker() -> None:
    (found,) = diagnose(
        [partition(0, 1, (1,), (1,)), partition(1, None, (3,), (3,)), partition(4, None, (3,), (3,))],
        live={1, 2},
    )
    assert found.tone == "bad"
    assert found.text == (
        "Partitions 1 and 4 are offline: all replicas are on broker 3, which is not registered. "
        "Nothing can be read or written there; other partitions are not affected."
    )
    assert found.advice == "Start broker 3 again: no other broker has these records."


def test_a_partition_whose_live_replica_was_not_in_sync_waits_for_the_other_broker() -> None:
    (found,) = diagnose([partition(2, None, (2, 3), (3,))], live={1, 2})
    assert found.text.startswith(
        "Partition 2 is without a leader and waits for broker 3, which is not registered:"
    )
    assert "the replica on broker 2 was not in sync" in found.text
    assert found.command == "headrace cluster elect --unclean --topic orders --partition 2"


def test_the_worst_is_said_first_and_a_healthy_partition_is_not_mentioned() -> None:
    found = diagnose(
        [
            partition(0, 1, (1, 2), (1, 2)),
            partition(1, 1, (1, 2), (1,)),
            partition(2, 1, (1, 3), (1,), least=2),
            partition(3, None, (3,), (3,)),
        ],
        live={1, 2},
    )
    assert [(each.tone, each.text.split(":")[0]) for each in found] == [
        ("bad", "Partition 3 is offline"),
        ("bad", "Partition 2 has fewer replicas in sync than min.insync.replicas"),
        ("warn", "Partition 1 is under-replicated"),
    ]
    assert found[2].advice == "Wait until the replicas have caught up."


def test_hundreds_of_partitions_are_counted_not_named() -> None:
    (found,) = diagnose([partition(each, None, (3,), (3,)) for each in range(300)], live={1})
    assert found.text.startswith("300 partitions (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …) are offline")
