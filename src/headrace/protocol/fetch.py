"""Fetch (key 1), v4-v18, coded by hand for speed: the most frequent request of consumers and followers.

As in `produce`, the usual shape of a flexible version takes the fast path here; all else, and
whatever is wrong, goes to the compiled codec.

Versions: v5 log start offset; v7 fetch sessions; v9 leader epochs; v11 racks; v12 flexible,
diverging epochs; v13 topic ids; v15 replica state; v16 node endpoints; v17 directory ids;
v18 high watermarks of followers.
"""

import struct
from struct import Struct
from typing import Any, Final

from headrace.protocol.compiled.structs import all_defaults
from headrace.protocol.fields import ZERO_UUID, Buffer
from headrace.protocol.primitives import Unusual, topic_head, uvarint
from headrace.protocol.schema.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    ReplicaState,
    SnapshotId,
)

_FLEXIBLE: Final = range(12, 19)
_WITH_TOPIC_ID: Final = 13
_WITH_REPLICA_STATE: Final = 15
_NO_EPOCH: Final = all_defaults(EpochEndOffset)
_NO_LEADER: Final = all_defaults(LeaderIdAndEpoch)
_NO_SNAPSHOT: Final = all_defaults(SnapshotId)
_CONSUMER: Final[ReplicaState] = all_defaults(ReplicaState)
_ANY_WATERMARK: Final = (1 << 63) - 1

_new: Any = object.__new__
_REPLICA_ID: Final = Struct(">i")  # up to v14; then it became part of a tagged field
# max wait, min bytes, max bytes, isolation level, session id, session epoch, topics + 1
_HEAD: Final = Struct(">iiibiiB")
# partition, leader epoch, offset, last fetched epoch, log start offset, max bytes, tagged fields
_PARTITION: Final = Struct(">iiqiqiB")
# one tagged field, its number and size; replica id and epoch; tagged fields of these
_FOLLOWER: Final = Struct(">3siqB")
_FOLLOWER_HEAD: Final = bytes((1, 1, 4 + 8 + 1))
# partition, error, high watermark, last stable offset, log start offset, aborted + 1, read replica
_pack_partition = Struct(">ihqqqBi").pack
_pack_head = Struct(">ihi").pack  # throttle time, error, session id


def decode_request(body: memoryview, version: int) -> FetchRequest:
    if version not in _FLEXIBLE:
        return FetchRequest.decode(body, version)
    try:
        usual: FetchRequest = _decode_usual(body, version)
    except (Unusual, struct.error, IndexError, ValueError):
        return FetchRequest.decode(body, version)  # handles every request, and explains errors
    return usual


def _decode_usual(buf: memoryview, version: int) -> Any:
    request = _new(FetchRequest)
    i = _HEAD.size
    if version < _WITH_REPLICA_STATE:
        (replica_id,) = _REPLICA_ID.unpack_from(buf)
        buf = buf[4:]
    else:
        replica_id = -1
    max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, n = _HEAD.unpack_from(buf)
    request.cluster_id = None
    request.replica_id = replica_id
    request.max_wait_ms = max_wait_ms
    request.min_bytes = min_bytes
    request.max_bytes = max_bytes
    request.isolation_level = isolation
    request.session_id = session_id
    request.session_epoch = session_epoch
    request.topics, i = _topics(buf, i, n, by_id=version >= _WITH_TOPIC_ID)
    request.forgotten_topics_data = ()
    forgotten, rack_size = buf[i], buf[i + 1]
    end = i + 1 + rack_size
    if forgotten != 1 or not 0 < rack_size < 128 or end >= len(buf):
        raise Unusual
    request.rack_id = "" if rack_size == 1 else buf[i + 2 : end].tobytes().decode()
    # A consumer's request has no tagged fields, and a follower's has its replica id.
    tags = buf[end:]
    if len(tags) == 1 and not tags[0]:
        request.replica_state = _CONSUMER
    elif len(tags) != _FOLLOWER.size or version < _WITH_REPLICA_STATE:
        raise Unusual
    else:
        head, replica_id, replica_epoch, nested = _FOLLOWER.unpack(tags)
        if head != _FOLLOWER_HEAD or nested:
            raise Unusual
        request.replica_state = ReplicaState(replica_id=replica_id, replica_epoch=replica_epoch)
    return request


def _topics(buf: memoryview, i: int, count: int, *, by_id: bool) -> tuple[list[FetchTopic], int]:
    if not 0 < count < 128:
        raise Unusual
    topics = []
    for _ in range(count - 1):
        topic = _new(FetchTopic)
        if by_id:
            j = i + 16
            topic.topic, topic.topic_id = "", buf[i:j].tobytes()
        else:
            j = i + buf[i]
            if not i < j < i + 128:
                raise Unusual
            topic.topic, topic.topic_id = buf[i + 1 : j].tobytes().decode(), ZERO_UUID
        topic.partitions, i = _partitions(buf, j)
        topics.append(topic)
    return topics, i


def _partitions(buf: memoryview, i: int) -> tuple[list[FetchPartition], int]:
    """Return the partitions of the topic at `i`, and the position after that topic."""
    count = buf[i]
    if not 0 < count < 128:
        raise Unusual
    i += 1
    end = i + (count - 1) * _PARTITION.size
    partitions = []
    for index, epoch, offset, fetched_epoch, start, most, tags in _PARTITION.iter_unpack(buf[i:end]):
        if tags:
            raise Unusual
        partition = _new(FetchPartition)
        partition.partition = index
        partition.current_leader_epoch = epoch
        partition.fetch_offset = offset
        partition.last_fetched_epoch = fetched_epoch
        partition.log_start_offset = start
        partition.partition_max_bytes = most
        partition.replica_directory_id = ZERO_UUID
        partition.high_watermark = _ANY_WATERMARK
        partitions.append(partition)
    if buf[end]:  # raises if the slice above was truncated
        raise Unusual
    return partitions, end + 1


def encode_response(response: FetchResponse, version: int) -> list[Buffer]:
    """Return the buffers of the response's body with record data; raise EncodeError if a field is invalid."""
    if version not in _FLEXIBLE or response.node_endpoints:
        return response.encode(version)
    try:
        return _encode_usual(response, by_id=version >= _WITH_TOPIC_ID)
    except (Unusual, struct.error, AttributeError, TypeError, ValueError):
        return response.encode(version)  # handles every response, or names the invalid field


def _encode_usual(response: FetchResponse, *, by_id: bool) -> list[Buffer]:
    buffers: list[Buffer] = []
    out = bytearray(_pack_head(response.throttle_time_ms, response.error_code, response.session_id))
    out += uvarint(len(response.responses) + 1)
    for topic in response.responses:
        out += topic_head(topic.topic, topic.topic_id, len(topic.partitions), by_id=by_id)
        for partition in topic.partitions:
            if (
                partition.aborted_transactions
                or partition.diverging_epoch is not _NO_EPOCH
                or partition.current_leader is not _NO_LEADER
                or partition.snapshot_id is not _NO_SNAPSHOT
            ):
                raise Unusual
            out += _pack_partition(
                partition.partition_index,
                partition.error_code,
                partition.high_watermark,
                partition.last_stable_offset,
                partition.log_start_offset,
                partition.aborted_transactions is not None,
                partition.preferred_read_replica,
            )
            records = partition.records
            if records:
                buffers.append(out + uvarint(len(records) + 1))
                buffers.append(records)
                out = bytearray(1)  # the partition has no tagged fields
            else:
                out += b"\0\0" if records is None else b"\1\0"
        out += b"\0"
    buffers.append(out + b"\0")
    return buffers
