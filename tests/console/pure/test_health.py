"""What is wrong with a cluster, in sentences, the worst first."""

from dataclasses import replace

from headrace.client.cluster.status import Broker, ClusterStatus, PartitionState
from headrace.gateway.console.views.cluster import needing_care, troubles


def broker(broker_id: int, state: str) -> Broker:
    return Broker(
        id=broker_id, host="h", port=1, rack=None, state=state, controller=False, pid=None, leads=0, follows=0
    )


SICK = PartitionState(topic="orders", partition=0, leader=1, replicas=(1, 2), in_sync=(1,), min_in_sync=2)
DEAD = PartitionState(topic="orders", partition=1, leader=None, replicas=(3,), in_sync=(3,))
STATUS = ClusterStatus(
    cluster_id="c",
    controller=None,
    brokers=(broker(1, "up"), broker(2, "silent"), broker(3, "down")),
    topics=1,
    partitions=2,
    under_replicated=(SICK, DEAD),
    under_min_isr=(SICK,),
    offline=(DEAD,),
    leaderless=(),
    not_preferred=(),
    reassignments=(),
)


def test_the_worst_is_said_first() -> None:
    assert [(each.tone, each.text) for each in troubles(STATUS)] == [
        ("bad", "1 partition without a leader"),
        ("bad", "broker 3 is down"),
        ("warn", "broker 2 is silent"),
        ("bad", "no broker is the controller"),
        ("bad", "1 partition below min.insync.replicas"),
        ("warn", "2 partitions under-replicated"),
    ]


def test_the_worst_partition_is_the_first_and_internal_topics_are_last_of_their_kind() -> None:
    def lacking(topic: str, leader: int | None = 1, least: int = 1) -> PartitionState:
        return PartitionState(
            topic=topic, partition=0, leader=leader, replicas=(1, 2), in_sync=(1,), min_in_sync=least
        )

    lazy, gone = [lacking("_a"), lacking("z")], [lacking("__offsets", None), lacking("orders", None)]
    status = replace(
        STATUS,
        offline=tuple(gone),
        under_min_isr=(lacking("refused", least=2),),
        under_replicated=(*lazy, lacking("refused", least=2), *gone),
    )

    assert [each.partition.topic for each in needing_care(status)] == [
        "orders",
        "__offsets",
        "refused",
        "z",
        "_a",
    ]


def test_a_partition_is_listed_once_with_all_that_is_wrong_with_it() -> None:
    found = {each.partition.partition: [text for _, text in each.tags] for each in needing_care(STATUS)}
    assert found == {0: ["below min ISR", "under-replicated"], 1: ["offline", "under-replicated"]}
