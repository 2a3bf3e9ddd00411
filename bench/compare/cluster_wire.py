"""What one broker of a cluster says of the others: who is there, who leads, who is the controller."""

from typing import NamedTuple

from compare.wire import Address, ask
from headrace.protocol.api import ApiKey
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import api_versions, describe_quorum, list_offsets, metadata


class Spread(NamedTuple):
    """The leader of each partition of a topic, and how many replicas are in sync; -1 is nobody."""

    leaders: tuple[int, ...]
    in_sync: tuple[int, ...]

    def led_by(self, broker_id: int) -> list[int]:
        return [partition for partition, leader in enumerate(self.leaders) if leader == broker_id]


def knows_brokers(address: Address, count: int) -> bool:
    """Whether the broker answers, and knows of so many."""
    try:
        return len(_metadata(address, ()).brokers) == count
    except OSError:
        return False


def spread_of(address: Address, topic: str) -> Spread:
    wanted = [metadata.MetadataRequestTopic(name=topic)]
    (found,) = _metadata(address, wanted).topics
    partitions = sorted(found.partitions, key=lambda each: each.partition_index)
    return Spread(
        tuple(each.leader_id for each in partitions), tuple(len(each.isr_nodes) for each in partitions)
    )


def leaders_answer(address: Address, topic: str, partitions: list[int]) -> bool:
    """Whether the broker leads these, and knows it: Kafka tells others shortly before."""
    parts = [list_offsets.ListOffsetsPartition(partition_index=each, timestamp=-1) for each in partitions]
    topics = [list_offsets.ListOffsetsTopic(name=topic, partitions=parts)]
    answer = ask(address, ApiKey.LIST_OFFSETS, list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics))
    assert isinstance(answer, list_offsets.ListOffsetsResponse)
    return not any(part.error_code for part in answer.topics[0].partitions)


def controller_of(address: Address) -> int:
    """Which broker is the controller. Where there is a quorum, Metadata names just any broker."""
    if not _has_quorum(address):
        return _metadata(address, ()).controller_id
    log = describe_quorum.DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata",
        partitions=[describe_quorum.DescribeQuorumRequestPartitionData(partition_index=0)],
    )
    answer = ask(address, ApiKey.DESCRIBE_QUORUM, describe_quorum.DescribeQuorumRequest(topics=[log]))
    assert isinstance(answer, describe_quorum.DescribeQuorumResponse)
    assert answer.error_code == ErrorCode.NONE, answer
    return answer.topics[0].partitions[0].leader_id


def _has_quorum(address: Address) -> bool:
    request = api_versions.ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    answer = ask(address, ApiKey.API_VERSIONS, request)
    assert isinstance(answer, api_versions.ApiVersionsResponse)
    return any(each.api_key == ApiKey.DESCRIBE_QUORUM for each in answer.api_keys)


def _metadata(
    address: Address, topics: "list[metadata.MetadataRequestTopic] | tuple[()]"
) -> metadata.MetadataResponse:
    request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer = ask(address, ApiKey.METADATA, request, timeout_s=5)
    assert isinstance(answer, metadata.MetadataResponse)
    return answer
