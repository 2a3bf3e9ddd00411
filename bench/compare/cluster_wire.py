"""What one broker of a cluster says of the others: who is there, who leads, who is the controller."""

from typing import Final, NamedTuple

from compare.wire import ask
from headrace.client.wire.connection import Address, NoAnswer, NotKnown
from headrace.client.wire.requests import metadata_request
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import describe_quorum

_QUICK_S: Final = 5


class Spread(NamedTuple):
    """The leader of each partition of a topic, and how many replicas are in sync; -1 is nobody."""

    leaders: tuple[int, ...]
    in_sync: tuple[int, ...]

    def led_by(self, broker_id: int) -> list[int]:
        return [partition for partition, leader in enumerate(self.leaders) if leader == broker_id]


def knows_brokers(address: Address, count: int) -> bool:
    """Whether the broker answers, and knows of so many."""
    try:
        return len(ask(address, metadata_request(), timeout_s=_QUICK_S).brokers) == count
    except NoAnswer:
        return False


def spread_of(address: Address, topic: str) -> Spread:
    (found,) = ask(address, metadata_request([topic]), timeout_s=_QUICK_S).topics
    partitions = sorted(found.partitions, key=lambda each: each.partition_index)
    return Spread(
        tuple(each.leader_id for each in partitions), tuple(len(each.isr_nodes) for each in partitions)
    )


def controller_of(address: Address) -> int:
    """Which broker is the controller. Where there is a quorum, Metadata names just any broker."""
    log = describe_quorum.DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata",
        partitions=[describe_quorum.DescribeQuorumRequestPartitionData(partition_index=0)],
    )
    try:
        answer = ask(address, describe_quorum.DescribeQuorumRequest(topics=[log]))
    except NotKnown:
        return int(ask(address, metadata_request(), timeout_s=_QUICK_S).controller_id)
    assert answer.error_code == ErrorCode.NONE, answer
    return int(answer.topics[0].partitions[0].leader_id)
