"""Which brokers a scrape tells of, and which groups a list cannot have."""

from headrace.client.cluster.reading import read_partitions
from headrace.client.wire.brokers import leaderless
from headrace.gateway.metrics.derived import known_brokers
from headrace.protocol.schema.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TOPIC = "__consumer_offsets"


def test_a_broker_that_only_replica_lists_name_is_told_of() -> None:
    found = metadata(alive=[2, 1], leaders=[1], replicas=[1, 2, 3])
    assert known_brokers(found, read_partitions(found)) == [1, 2, 3]


def test_a_broker_without_replicas_is_told_of() -> None:
    found = metadata(alive=[1, 4], leaders=[1], replicas=[1])
    assert known_brokers(found, read_partitions(found)) == [1, 4]


def test_groups_of_partitions_that_nobody_leads_are_missing() -> None:
    assert list(leaderless(metadata(alive=[1, 2], leaders=[1, -1, 2, 3], replicas=[1, 2, 3]), TOPIC)) == [
        f"2 of the partitions of {TOPIC} have no leader"
    ]


def test_nothing_is_missing_while_all_partitions_are_led() -> None:
    assert not list(leaderless(metadata(alive=[1, 2], leaders=[1, 2, 2], replicas=[1, 2]), TOPIC))
    assert not list(leaderless(metadata(alive=[1], leaders=[], replicas=[]), TOPIC))


def metadata(*, alive: list[int], leaders: list[int], replicas: list[int]) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=each, host="h", port=each) for each in alive],
        topics=[
            MetadataResponseTopic(
                name=TOPIC,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index, leader_id=leader, replica_nodes=replicas, isr_nodes=[leader]
                    )
                    for index, leader in enumerate(leaders)
                ],
            )
        ],
    )
