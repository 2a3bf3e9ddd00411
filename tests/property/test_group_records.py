"""Records of groups: anything can be written and read, and nothing that is read does any harm."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.limits import GroupLimits
from headrace.coordinators.group.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicPartitions,
    decode_record,
    encode_record,
)
from headrace.protocol.errors import ProtocolError

EXAMPLES = 20 * int(os.environ.get("HEADRACE_EXAMPLES", "3"))
searched = settings(max_examples=EXAMPLES, deadline=None)

texts = st.text(max_size=8)
names = st.sampled_from(["g", "h", ""])
members = st.sampled_from(["a", "b", ""])
topics = st.sampled_from(["t", "u"])
int8 = st.integers(-(2**7), 2**7 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
data = st.binary(max_size=12)
partitions = st.lists(
    st.builds(TopicPartitions, topic_id=st.sampled_from([b"t" * 16, b"u" * 16]), partitions=st.lists(int32)),
    max_size=2,
)
offsets = st.builds(
    OffsetCommitValue, offset=int64, leader_epoch=int32, metadata=texts, commit_timestamp=int64
) | st.builds(
    OffsetCommitValue,
    offset=int64,
    metadata=texts,
    commit_timestamp=int64,
    expire_timestamp=st.integers(0, 2**63 - 1),
)
classic_members = st.builds(
    MemberMetadata,
    member_id=members,
    group_instance_id=st.none() | texts,
    client_id=texts,
    client_host=texts,
    rebalance_timeout=int32,
    session_timeout=int32,
    subscription=data,
    assignment=data,
)
classic_groups = st.builds(
    GroupMetadataValue,
    protocol_type=st.sampled_from(["consumer", "connect", ""]),
    generation=int32,
    protocol=st.none() | texts,
    leader=st.none() | members,
    current_state_timestamp=int64,
    members=st.lists(classic_members, max_size=3),
)
consumers = st.builds(
    ConsumerGroupMemberMetadataValue,
    instance_id=st.none() | texts,
    rack_id=st.none() | texts,
    client_id=texts,
    client_host=texts,
    subscribed_topic_names=st.lists(topics, max_size=2),
    subscribed_topic_regex=st.none() | texts,
    rebalance_timeout_ms=int32,
    server_assignor=st.none() | texts,
    classic_member_metadata=st.none()
    | st.builds(
        ClassicMemberMetadata,
        session_timeout_ms=int32,
        supported_protocols=st.lists(st.builds(ClassicProtocol, name=texts, metadata=data), max_size=2),
    ),
)
assignments = st.builds(
    ConsumerGroupCurrentMemberAssignmentValue,
    member_epoch=int32,
    previous_member_epoch=int32,
    state=int8,
    assigned_partitions=partitions,
    partitions_pending_revocation=partitions,
)
kinds = [
    (st.builds(OffsetCommitKey, group=names, topic=topics, partition=int32), offsets),
    (st.builds(GroupMetadataKey, group=names), classic_groups),
    (
        st.builds(ConsumerGroupMetadataKey, group=names),
        st.builds(ConsumerGroupMetadataValue, epoch=int32, metadata_hash=int64),
    ),
    (st.builds(ConsumerGroupMemberMetadataKey, group=names, member_id=members), consumers),
    (
        st.builds(ConsumerGroupTargetAssignmentMetadataKey, group=names),
        st.builds(ConsumerGroupTargetAssignmentMetadataValue, assignment_epoch=int32),
    ),
    (
        st.builds(ConsumerGroupTargetAssignmentMemberKey, group=names, member_id=members),
        st.builds(ConsumerGroupTargetAssignmentMemberValue, topic_partitions=partitions),
    ),
    (st.builds(ConsumerGroupCurrentMemberAssignmentKey, group=names, member_id=members), assignments),
    (
        st.builds(ConsumerGroupRegularExpressionKey, group=names, regular_expression=texts),
        st.builds(
            ConsumerGroupRegularExpressionValue, topics=st.lists(topics), version=int64, timestamp=int64
        ),
    ),
]
records = st.one_of(*(st.builds(GroupRecord, key, st.none() | value) for key, value in kinds))


@searched
@given(records)
def test_what_is_written_is_what_is_read(record: GroupRecord) -> None:
    assert decode_record(*encode_record(record)) == record


@searched
@given(st.data(), records)
def test_bytes_that_were_damaged_are_read_or_refused(choices: st.DataObject, record: GroupRecord) -> None:
    parts = [bytearray(part) for part in encode_record(record) if part is not None]
    for part in parts:
        at = choices.draw(st.integers(0, len(part) - 1))
        part[at] = choices.draw(st.integers(0, 255))
        del part[choices.draw(st.integers(0, len(part))) :]
    try:
        read = decode_record(parts[0], parts[1] if len(parts) == 2 else None)
    except ProtocolError:
        return
    assert read is None or decode_record(*encode_record(read)) == read


@searched
@given(st.binary(max_size=40), st.none() | st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(key: bytes, value: bytes | None) -> None:
    try:
        decode_record(key, value)
    except ProtocolError:
        return


@searched
@given(st.lists(records, max_size=12))
def test_any_records_in_any_order_can_be_taken_in(history: list[GroupRecord]) -> None:
    """A log that was compacted, cut short, or written by others is no reason to fail."""
    coordinator = GroupCoordinator(GroupLimits(), lambda: "id")
    for record in history:
        coordinator.apply(record)

    coordinator.start(0)
    for record in coordinator.expire_offsets(2**62).records:
        coordinator.apply(record)
