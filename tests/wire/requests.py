"""Requests in one line each, for tests that speak the protocol themselves."""

import itertools
from collections.abc import Sequence
from typing import Any

from headrace.protocol.message import ZERO_UUID
from headrace.protocol.records import Record, decode_batch
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.records import headers_of, make_batch, split_batches
from wire.raw import RawClient

ASK_VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")

_numbers = itertools.count()


def fresh_name(prefix: str = "topic") -> str:
    """A topic that no other test of this run uses."""
    return f"{prefix}-{next(_numbers)}"


def create_topic(client: RawClient, name: str | None = None, *, partitions: int = 1, **configs: str) -> bytes:
    """Create a topic and return its id; settings with underscores for dots."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name or fresh_name(),
                num_partitions=partitions,
                replication_factor=1,
                assignments=(),
                configs=[
                    CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
        ],
        timeout_ms=10_000,
    )
    (topic,) = client.ask(request, 7).topics
    assert topic.error_code == 0, topic
    topic_id: bytes = topic.topic_id
    return topic_id


def produce_request(
    topic: str | bytes, records: bytes | bytearray | None = None, *, partition: int = 0, acks: int = 1
) -> ProduceRequest:
    """One batch for one partition of a topic, by name or by id."""
    name, topic_id = (topic, ZERO_UUID) if isinstance(topic, str) else ("", topic)
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=topic_id,
                partition_data=[
                    PartitionProduceData(
                        index=partition, records=make_batch(1) if records is None else records
                    )
                ],
            )
        ],
    )


def produce(
    client: RawClient, topic: str, records: bytes | bytearray | None = None, *, partition: int = 0
) -> Any:
    """What the broker says of one batch."""
    response = client.ask(produce_request(topic, records, partition=partition), 9)
    return response.responses[0].partition_responses[0]


def fetch_request(
    topic: str | bytes,
    offset: int = 0,
    *,
    partitions: Sequence[int] = (0,),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 2**20,
    partition_max_bytes: int = 2**20,
    session_id: int = 0,
    session_epoch: int = -1,
    leader_epoch: int = -1,
    isolation_level: int = 0,
) -> FetchRequest:
    """The same offset of some partitions of a topic, by name or by id."""
    name, topic_id = (topic, ZERO_UUID) if isinstance(topic, str) else ("", topic)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            FetchTopic(
                topic=name,
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=leader_epoch,
                    )
                    for partition in partitions
                ],
            )
        ]
        if partitions
        else (),
    )


def fetch(client: RawClient, topic: str, offset: int = 0, **options: Any) -> PartitionData:
    """What the broker has of one partition."""
    data: PartitionData = client.ask(fetch_request(topic, offset, **options), 12).responses[0].partitions[0]
    return data


def records_in(data: PartitionData) -> list[Record]:
    """Every record of what was fetched, batches checked."""
    batches = split_batches(data.records or b"")
    return [record for batch in batches for record in decode_batch(batch, headers_of(batch)[0])]
