"""The records of `__consumer_offsets` in Kafka's formats.

Key and value each begin with a version of two bytes; the version of a key is the type of the record. A
record without a value is a tombstone. Values are written in the newest version that every Kafka since 2.1
can read, and are read in all versions.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.message import ZERO_UUID, Message, Struct, field


class OffsetCommitKey(Message, versions="0-1", flexible="none"):
    group: str = field("string", "0+")
    topic: str = field("string", "0+")
    partition: int = field("int32", "0+")


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    offset: int = field("int64", "0+")
    leader_epoch: int = field("int32", "3+", default=-1)
    metadata: str = field("string", "0+")
    commit_timestamp: int = field("int64", "0+")
    expire_timestamp: int = field("int64", "1", default=-1)
    topic_id: bytes = field("uuid", "4+", tag=0, default=ZERO_UUID)


class GroupMetadataKey(Message, versions="2", flexible="none"):
    group: str = field("string", "2")


class MemberMetadata(Struct):
    member_id: str = field("string", "0+")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)
    client_id: str = field("string", "0+")
    client_host: str = field("string", "0+")
    rebalance_timeout: int = field("int32", "1+", default=-1)
    session_timeout: int = field("int32", "0+")
    subscription: bytes = field("bytes", "0+")
    assignment: bytes = field("bytes", "0+")


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    protocol_type: str = field("string", "0+")
    generation: int = field("int32", "0+")
    protocol: str | None = field("string", "0+", nullable="0+")
    leader: str | None = field("string", "0+", nullable="0+")
    current_state_timestamp: int = field("int64", "2+", default=-1)
    members: Sequence[MemberMetadata] = field("[]MemberMetadata", "0+")


class ConsumerGroupMetadataKey(Message, versions="3", flexible="none"):
    group: str = field("string", "3")


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: int = field("int32", "0+")
    metadata_hash: int = field("int64", "0+", tag=0, default=0)


class ConsumerGroupMemberMetadataKey(Message, versions="5", flexible="none"):
    group: str = field("string", "5")
    member_id: str = field("string", "5")


class ClassicProtocol(Struct):
    name: str = field("string", "0+")
    metadata: bytes = field("bytes", "0+")


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = field("int32", "0+")
    supported_protocols: Sequence[ClassicProtocol] = field("[]ClassicProtocol", "0+")


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: str | None = field("string", "0+", nullable="0+", default=None)
    rack_id: str | None = field("string", "0+", nullable="0+", default=None)
    client_id: str = field("string", "0+")
    client_host: str = field("string", "0+")
    subscribed_topic_names: Sequence[str] = field("[]string", "0+")
    subscribed_topic_regex: str | None = field("string", "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = field("int32", "0+", default=-1)
    server_assignor: str | None = field("string", "0+", nullable="0+", default=None)
    classic_member_metadata: ClassicMemberMetadata | None = field(
        "ClassicMemberMetadata", "0+", nullable="0+", tag=0, default=None
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions="6", flexible="none"):
    group: str = field("string", "6")


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: int = field("int32", "0+")


class ConsumerGroupTargetAssignmentMemberKey(Message, versions="7", flexible="none"):
    group: str = field("string", "7")
    member_id: str = field("string", "7")


class TopicPartitions(Struct):
    topic_id: bytes = field("uuid", "0+")
    partitions: Sequence[int] = field("[]int32", "0+")


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: Sequence[TopicPartitions] = field("[]TopicPartitions", "0+")


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions="8", flexible="none"):
    group: str = field("string", "8")
    member_id: str = field("string", "8")


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: int = field("int32", "0+")
    previous_member_epoch: int = field("int32", "0+")
    state: int = field("int8", "0+")
    assigned_partitions: Sequence[TopicPartitions] = field("[]TopicPartitions", "0+")
    partitions_pending_revocation: Sequence[TopicPartitions] = field("[]TopicPartitions", "0+")


class ConsumerGroupRegularExpressionKey(Message, versions="16", flexible="none"):
    group: str = field("string", "16")
    regular_expression: str = field("string", "16")


class ConsumerGroupRegularExpressionValue(Message, versions="0", flexible="0+"):
    topics: Sequence[str] = field("[]string", "0+")
    version: int = field("int64", "0+")
    timestamp: int = field("int64", "0+")


class GroupRecord(NamedTuple):
    """Key and value of a record; without a value it is a tombstone."""

    key: Message
    value: Message | None


class _RecordType(NamedTuple):
    key: type[Message]
    value: type[Message]
    written_version: int  # of the value


_RECORD_TYPES: Final[dict[int, _RecordType]] = {
    0: _RecordType(OffsetCommitKey, OffsetCommitValue, 3),
    1: _RecordType(OffsetCommitKey, OffsetCommitValue, 3),
    2: _RecordType(GroupMetadataKey, GroupMetadataValue, 3),
    3: _RecordType(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, 0),
    5: _RecordType(ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, 0),
    6: _RecordType(ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue, 0),
    7: _RecordType(ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, 0),
    8: _RecordType(ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, 0),
    16: _RecordType(ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, 0),
}
_KEY_VERSIONS: Final = {record_type.key: version for version, record_type in _RECORD_TYPES.items()}
_WITH_EXPIRY: Final = 1  # the only version of OffsetCommitValue with an expire timestamp
_VERSION: Final = struct.Struct(">h")
_OFFSET_COMMITS: Final = (b"\0\0", b"\0\1")  # the versions of OffsetCommitKey, encoded


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue):
        # Without the codec, in half the time: most records are offset commits.
        value = record.value
        group, topic, metadata = record.key.group.encode(), record.key.topic.encode(), value.metadata.encode()
        layout = f">hh{len(group)}sh{len(topic)}si"
        encoded = struct.pack(layout, 1, len(group), group, len(topic), topic, record.key.partition)
        if value.expire_timestamp != -1:
            return encoded, _VERSION.pack(_WITH_EXPIRY) + b"".join(value.encode(_WITH_EXPIRY))
        layout = f">hqih{len(metadata)}sq"
        return encoded, struct.pack(
            layout, 3, value.offset, value.leader_epoch, len(metadata), metadata, value.commit_timestamp
        )
    version = _KEY_VERSIONS[type(record.key)]
    key = _VERSION.pack(version) + b"".join(record.key.encode(version))
    if record.value is None:
        return key, None
    written = _RECORD_TYPES[version].written_version
    return key, _VERSION.pack(written) + b"".join(record.value.encode(written))


def decode_record(key: Buffer | None, value: Buffer | None) -> GroupRecord | None:
    """Return the decoded record; None if its type is unknown (a later Kafka has written it).

    Raise ProtocolError if the type is known and the record is malformed.
    """
    if key is None:
        raise ProtocolError("a record of __consumer_offsets has no key")
    version = _version(key)
    record_type = _RECORD_TYPES.get(version)
    if record_type is None:
        return None
    decoded = record_type.key.decode(memoryview(key)[2:], version)
    if value is None:
        return GroupRecord(decoded, None)
    newest = record_type.value.__codec__.versions[-1]
    body = memoryview(value)[2:]
    return GroupRecord(
        decoded, record_type.value.__codec__.decode(body, min(_version(value), newest), trailing=True)
    )


def is_offset_commit(key: bytes) -> bool:
    """Return whether this is the key of an offset commit, of which only the last record matters."""
    return key.startswith(_OFFSET_COMMITS)


def _version(data: Buffer) -> int:
    if len(data) < 2:
        raise ProtocolError(f"{bytes(data)!r} is too short for the version of a group record")
    version: int = _VERSION.unpack_from(data)[0]
    return version
