"""Who leads a partition, from what a broker says of topics."""

import pytest

from headrace.client.errors import ClientError
from headrace.client.wire.offsets import leaders
from headrace.client.wire.requests import Node
from headrace.client.wire.retry import Known, Unanswered
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def test_a_partition_is_asked_of_its_leader() -> None:
    assert leaders(metadata(2), [TopicPartition("t", 0)]) == {TopicPartition("t", 0): Node(2, "h", 2)}


def test_nobody_waits_for_a_partition_that_nobody_leads() -> None:
    assert leaders(metadata(-1), [TopicPartition("t", 0)]) == {
        TopicPartition("t", 0): Unanswered(
            "the partition has no leader (LEADER_NOT_AVAILABLE)", retriable=False
        )
    }


def test_a_leader_that_has_just_gone_has_a_successor_soon() -> None:
    found = leaders(metadata(9), [TopicPartition("t", 0)])[TopicPartition("t", 0)]
    assert isinstance(found, Unanswered)
    assert found.retriable


@pytest.mark.parametrize("place", [TopicPartition("t", 7), TopicPartition("other", 0)])
def test_what_is_not_there_has_no_offset(place: TopicPartition) -> None:
    assert leaders(metadata(1), [place]) == {place: Known(None)}


def test_a_topic_that_is_not_for_us_is_said_to_be() -> None:
    with pytest.raises(ClientError, match="t: TOPIC_AUTHORIZATION_FAILED"):
        leaders(metadata(1, ErrorCode.TOPIC_AUTHORIZATION_FAILED), [TopicPartition("t", 0)])


def metadata(leader: int, error: int = 0) -> MetadataResponse:
    partition = MetadataResponsePartition(
        partition_index=0, leader_id=leader, replica_nodes=[1], isr_nodes=[1]
    )
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=each, host="h", port=each) for each in (1, 2)],
        topics=[MetadataResponseTopic(error_code=error, name="t", partitions=[partition])],
    )
