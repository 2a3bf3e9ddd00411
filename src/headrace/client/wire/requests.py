"""The requests that more than one part of the client sends, built once, and readers of their responses."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from headrace.client.wire.connection import Address
from headrace.protocol.batch import read_offset_and_size
from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema import incremental_alter_configs, list_offsets, offset_commit
from headrace.protocol.schema.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData

EARLIEST, LATEST = -2, -1  # timestamps of ListOffsets that stand for the two ends of a log
NO_LEADER: Final = -1
TOPIC, BROKER = 2, 4  # resource types of DescribeConfigs and IncrementalAlterConfigs
BROKER_DEFAULT: Final = -1  # partitions or replicas of a new topic, by the settings of the brokers
EVERY_BROKER: Final = ""  # the resource name that stands for all brokers
SET, DELETE, APPEND, SUBTRACT = range(4)  # operations of IncrementalAlterConfigs
TIMEOUT_MS: Final = 30_000
_CLIENT: Final = -1  # the replica id of a client
_ACKS_ALL: Final = -1
_NO_ID: Final = bytes(16)
_SMALLEST_BATCH: Final = 61

ConfigChange = tuple[str, int, str | None]  # a setting, the operation, and the value


class CoordinatorType(IntEnum):
    GROUP = 0
    TRANSACTION = 1


class Node(NamedTuple):
    """A registered broker and its address."""

    id: int
    host: str
    port: int

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """The broker that coordinates a group or a transactional id."""

    id: int
    host: str
    port: int


def metadata_request(topics: Iterable[str] | None = (), *, create: bool = False) -> MetadataRequest:
    """Ask for the brokers and these topics, or all topics (None)."""
    named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=create)


def nodes_of(found: MetadataResponse) -> list[Node]:
    """Return the registered brokers; one of them may have died a moment ago."""
    return [Node(broker.node_id, broker.host, broker.port) for broker in found.brokers]


def addresses_by_id(found: MetadataResponse) -> dict[int, Address]:
    """Return the address of each registered broker."""
    return {broker.node_id: Address(broker.host, broker.port) for broker in found.brokers}


def leaders_of(found: MetadataResponse) -> dict[TopicPartition, int]:
    """Return the leader of each partition; NO_LEADER where it has none."""
    return {
        TopicPartition(topic.name or "", partition.partition_index): partition.leader_id
        for topic in found.topics
        for partition in topic.partitions
    }


def list_offsets_request(
    timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> list_offsets.ListOffsetsRequest:
    """Ask a leader for the offset of a timestamp, or of EARLIEST or LATEST, in each partition."""
    topics = [
        list_offsets.ListOffsetsTopic(
            name=topic,
            partitions=[
                list_offsets.ListOffsetsPartition(
                    partition_index=index, timestamp=timestamps[TopicPartition(topic, index)]
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(timestamps).items()
    ]
    return list_offsets.ListOffsetsRequest(
        replica_id=_CLIENT, isolation_level=int(read_committed), topics=topics, timeout_ms=TIMEOUT_MS
    )


def listed_offsets(
    found: list_offsets.ListOffsetsResponse,
) -> dict[TopicPartition, list_offsets.ListOffsetsPartitionResponse]:
    """Return the answer for each partition."""
    return {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in found.topics
        for partition in topic.partitions
    }


def fetch_request(
    partition: TopicPartition,
    offset: int,
    *,
    topic_id: bytes,
    max_bytes: int,
    max_wait_ms: int = 0,
    read_committed: bool = False,
    rack: str = "",
) -> FetchRequest:
    """Ask a leader for the record batches of one partition from `offset` on.

    With a rack, the leader may name a replica there to read from instead (KIP-392).
    """
    wanted = FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1 if max_wait_ms else 0,
        max_bytes=max_bytes,
        isolation_level=int(read_committed),
        topics=[FetchTopic(topic=partition.topic, topic_id=topic_id, partitions=[wanted])],
        rack_id=rack,
    )


def whole_batches(data: Buffer) -> Iterator[memoryview]:
    """Yield the complete record batches of a Fetch response, whose last batch may be cut off.

    ValueError if a size field says that this is not record data.
    """
    view, position = memoryview(data), 0
    while position + _SMALLEST_BATCH <= len(view):
        _, size = read_offset_and_size(view, position)
        if size < _SMALLEST_BATCH:
            raise ValueError(f"a batch claims {size} bytes: the broker did not send record data")
        if position + size > len(view):
            return
        yield view[position : position + size]
        position += size


def produce_request(
    batches: Mapping[TopicPartition, Buffer],
    topic_ids: Mapping[str, bytes],
    *,
    acks: int = _ACKS_ALL,
    timeout_ms: int = TIMEOUT_MS,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Ask a leader to append one batch to each partition."""
    topics: dict[str, list[PartitionProduceData]] = defaultdict(list)
    for (topic, index), batch in batches.items():
        topics[topic].append(PartitionProduceData(index=index, records=batch))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(name=name, topic_id=topic_ids.get(name, _NO_ID), partition_data=data)
            for name, data in topics.items()
        ],
    )


def coordinators_request(
    keys: Sequence[str], kind: CoordinatorType = CoordinatorType.GROUP
) -> FindCoordinatorRequest:
    """Ask who coordinates these groups or transactional ids; before version 4, only the first one."""
    return FindCoordinatorRequest(key=keys[0], key_type=kind, coordinator_keys=keys)


def offset_commit_request(
    group: str, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, bytes] | None = None
) -> offset_commit.OffsetCommitRequest:
    """Ask a coordinator to commit offsets for a group without members."""
    topics = [
        offset_commit.OffsetCommitRequestTopic(
            name=topic,
            topic_id=(topic_ids or {}).get(topic, _NO_ID),
            partitions=[
                offset_commit.OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offsets[TopicPartition(topic, index)],
                    committed_metadata="",
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]
    return offset_commit.OffsetCommitRequest(group_id=group, member_id="", topics=topics)


def describe_configs_request(
    resource_type: int, names: Iterable[str], keys: Sequence[str] | None = None
) -> DescribeConfigsRequest:
    """Ask for these settings, or all (None), of topics or brokers."""
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=keys)
            for name in names
        ]
    )


def alter_configs_request(
    resource_type: int, changes: Mapping[str, Iterable[ConfigChange]]
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    """Ask to change settings of topics or brokers, by their names."""
    resources = [
        incremental_alter_configs.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configs=[
                incremental_alter_configs.AlterableConfig(
                    name=setting, config_operation=operation, value=value
                )
                for setting, operation, value in some
            ],
        )
        for name, some in changes.items()
    ]
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


def create_topic_request(
    name: str,
    *,
    partitions: int | None = None,
    replicas: int | None = None,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> CreateTopicsRequest:
    """Ask to create one topic; None leaves the number of partitions or replicas to the broker's settings."""
    topic = CreatableTopic(
        name=name,
        num_partitions=BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=BROKER_DEFAULT if replicas is None else replicas,
        assignments=(),
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only)
