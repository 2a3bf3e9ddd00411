"""How far a query has come, told to a consumer group: every tool that shows lag shows Spark's then, too."""

from headrace.client.wire.connection import Address
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.spark.cluster import PASSING, Cluster, Passing, describe
from headrace.spark.errors import SparkError
from headrace.spark.offsets import Offsets

_GROUP = 0  # a kind of coordinator


def commit_offsets(cluster: Cluster, group: str, offsets: Offsets) -> None:
    """Let `group` have these offsets; it has no members, only a place. SparkError if it cannot be done."""
    cluster.patiently(lambda: _commit(cluster, group, offsets))


def _commit(cluster: Cluster, group: str, offsets: Offsets) -> None:
    cluster.topics({place.topic for place in offsets})  # their ids go with it, and may have changed
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for place, offset in sorted(offsets.items()):
        topics.setdefault(place.topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=place.partition, committed_offset=offset, committed_metadata=""
            )
        )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(name=name, topic_id=cluster.topic_id(name), partitions=each)
            for name, each in topics.items()
        ],
    )
    for topic in cluster.ask(_coordinator(cluster, group), request).topics:
        for each in topic.partitions:
            _check(each.error_code, f"group {group}")


def _coordinator(cluster: Cluster, group: str) -> Address:
    found = cluster.any(FindCoordinatorRequest(key=group, key_type=_GROUP, coordinator_keys=[group]))
    answer = found.coordinators[0] if found.coordinators else found
    _check(answer.error_code, f"the coordinator of group {group}")
    return Address(answer.host, answer.port)


def _check(code: int, what: str) -> None:
    if code in PASSING:
        raise Passing(f"{what}: {describe(code)}")
    if code != ErrorCode.NONE:
        raise SparkError(f"{what}: the broker says {describe(code)}")
