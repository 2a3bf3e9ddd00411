"""Records of `__consumer_offsets`, byte by byte and there and back."""

import pytest

from headrace.coordinators.group.consumer import ConsumerGroup, MemberState
from headrace.coordinators.group.errors import FencedMemberEpoch
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
from support.groups import beat_request
from unit.coordinators.group.stories import consumers, desk

SOME = [TopicPartitions(topic_id=b"t" * 16, partitions=[0, 2])]
MEMBER = MemberMetadata(
    member_id="m",
    group_instance_id="i",
    client_id="c",
    client_host="/h",
    rebalance_timeout=60_000,
    session_timeout=10_000,
    subscription=b"s",
    assignment=b"a",
)
RECORDS = [
    GroupRecord(
        OffsetCommitKey(group="g", topic="t", partition=3),
        OffsetCommitValue(offset=7, leader_epoch=2, metadata="x", commit_timestamp=1_000),
    ),
    GroupRecord(
        OffsetCommitKey(group="g", topic="t", partition=3),
        OffsetCommitValue(offset=7, metadata="", commit_timestamp=1_000, expire_timestamp=2_000),
    ),
    GroupRecord(
        GroupMetadataKey(group="g"),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=4,
            protocol="range",
            leader="m",
            current_state_timestamp=5_000,
            members=[MEMBER],
        ),
    ),
    GroupRecord(
        GroupMetadataKey(group="g"),
        GroupMetadataValue(protocol_type="", generation=4, protocol=None, leader=None, members=[]),
    ),
    GroupRecord(ConsumerGroupMetadataKey(group="g"), ConsumerGroupMetadataValue(epoch=5, metadata_hash=-77)),
    GroupRecord(ConsumerGroupMetadataKey(group="g"), ConsumerGroupMetadataValue(epoch=5)),
    GroupRecord(
        ConsumerGroupMemberMetadataKey(group="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(
            instance_id="i",
            rack_id="r",
            client_id="c",
            client_host="/h",
            subscribed_topic_names=["a", "b"],
            subscribed_topic_regex="x.*",
            rebalance_timeout_ms=300_000,
            server_assignor="uniform",
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=45_000, supported_protocols=[ClassicProtocol(name="range", metadata=b"s")]
            ),
        ),
    ),
    GroupRecord(
        ConsumerGroupMemberMetadataKey(group="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(client_id="", client_host="", subscribed_topic_names=[]),
    ),
    GroupRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group="g"),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=6),
    ),
    GroupRecord(
        ConsumerGroupTargetAssignmentMemberKey(group="g", member_id="m"),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=SOME),
    ),
    GroupRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id="m"),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=6,
            previous_member_epoch=5,
            state=1,
            assigned_partitions=SOME,
            partitions_pending_revocation=[],
        ),
    ),
    GroupRecord(
        ConsumerGroupRegularExpressionKey(group="g", regular_expression="x.*"),
        ConsumerGroupRegularExpressionValue(topics=["x1"], version=9, timestamp=1_000),
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record.value).__name__)
def test_what_is_written_can_be_read(record: GroupRecord) -> None:
    assert decode_record(*encode_record(record)) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record.key).__name__)
def test_a_tombstone_is_a_key_alone(record: GroupRecord) -> None:
    key, _ = encode_record(record)

    assert encode_record(GroupRecord(record.key, None)) == (key, None)
    assert decode_record(key, None) == (record.key, None)


def test_an_offset_as_kafka_writes_it() -> None:
    key, value = encode_record(RECORDS[0])

    assert key == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x03"
    assert value == (
        b"\x00\x03" + (7).to_bytes(8, "big") + b"\x00\x00\x00\x02" + b"\x00\x01x" + (1_000).to_bytes(8, "big")
    )


def test_a_consumer_as_kafka_writes_it() -> None:
    """With a tagged field that says that there is nothing to say: a nullable struct that is null is a 0."""
    key = b"\x00\x05\x00\x01g\x00\x01m"
    value = b"\x00\x00" + b"\x00\x00\x02c\x03/h\x02\x02t\x01\x00\x04\x93\xe0\x00"

    record = decode_record(key, value + b"\x01\x00\x01\x00")

    assert record is not None
    assert record.value == ConsumerGroupMemberMetadataValue(
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["t"],
        subscribed_topic_regex="",
        rebalance_timeout_ms=300_000,
        classic_member_metadata=None,
    )


def test_an_offset_that_says_when_it_expires_is_of_the_one_version_that_can() -> None:
    _, value = encode_record(RECORDS[1])

    assert value is not None
    assert value[:2] == b"\x00\x01"
    assert value[-8:] == (2_000).to_bytes(8, "big")


def test_keys_of_all_kinds_begin_with_their_number() -> None:
    numbers = {
        type(record.key).__name__: int.from_bytes(encode_record(record)[0][:2], "big") for record in RECORDS
    }

    assert numbers == {
        "OffsetCommitKey": 1,
        "GroupMetadataKey": 2,
        "ConsumerGroupMetadataKey": 3,
        "ConsumerGroupMemberMetadataKey": 5,
        "ConsumerGroupTargetAssignmentMetadataKey": 6,
        "ConsumerGroupTargetAssignmentMemberKey": 7,
        "ConsumerGroupCurrentMemberAssignmentKey": 8,
        "ConsumerGroupRegularExpressionKey": 16,
    }


@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_version_are_read(version: int) -> None:
    key, _ = encode_record(RECORDS[2])
    assert RECORDS[2].value is not None
    value = version.to_bytes(2, "big") + b"".join(RECORDS[2].value.encode(version))

    record = decode_record(key, value)

    assert record is not None
    assert isinstance(record.value, GroupMetadataValue)
    (member,) = record.value.members
    assert (record.value.generation, member.assignment) == (4, b"a")
    assert member.rebalance_timeout == (60_000 if version >= 1 else -1)
    assert record.value.current_state_timestamp == (5_000 if version >= 2 else -1)
    assert member.group_instance_id == ("i" if version >= 3 else None)


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_every_version_are_read(version: int) -> None:
    key, _ = encode_record(RECORDS[0])
    assert RECORDS[0].value is not None
    value = version.to_bytes(2, "big") + b"".join(RECORDS[0].value.encode(version))

    record = decode_record(b"\x00\x00" + key[2:], value)  # a key of version 0 is the same

    assert record is not None
    assert isinstance(record.value, OffsetCommitValue)
    assert (record.value.offset, record.value.metadata) == (7, "x")
    assert record.value.leader_epoch == (2 if version >= 3 else -1)


@pytest.mark.parametrize("number", [4, 9, 15, 17, 99, -1])
def test_records_of_kinds_that_we_do_not_use_are_passed_over(number: int) -> None:
    assert decode_record(number.to_bytes(2, "big", signed=True) + b"whatever", b"whatever") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", b""),
        (b"\x00", None),
        (b"\x00\x02", None),
        (b"\x00\x02\x00\x05g", None),
        (b"\x00\x02\x00\x01gx", None),
        (b"\x00\x02\x00\x01g", b""),
        (b"\x00\x02\x00\x01g", b"\x00"),
        (b"\x00\x02\x00\x01g", b"\xff\xff"),
        (b"\x00\x02\x00\x01g", b"\x00\x03\x00"),
        (b"\x00\x03\x00\x01g", b"\x00\x00\x00\x00"),
    ],
)
def test_what_only_looks_like_a_record_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        decode_record(key, value)


# -- records that we would not write ---------------------------------------------------------------


def test_a_member_in_a_state_of_a_later_version_has_to_begin_anew() -> None:
    at = desk()
    epoch = at.beat(beat_request("a", 0)).epoch
    group = consumers(at)
    group.apply(
        ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id="a"),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=epoch - 1,
            state=99,
            assigned_partitions=[],
            partitions_pending_revocation=[],
        ),
    )

    assert group.members["a"].state is MemberState.UNKNOWN
    with pytest.raises(FencedMemberEpoch):
        at.beat(beat_request("a", epoch))
    assert at.beat(beat_request("a", 0)).assignment == {at.topic_id("orders"): frozenset({0, 1, 2})}


def test_records_may_come_in_any_order_and_without_the_others() -> None:
    at = desk()
    for record in reversed(RECORDS):
        at.apply(record)
        at.apply(GroupRecord(record.key, None))

    assert at.coordinator.offsets.of("g") == {}
    assert all(not group.members for group in at.coordinator.groups.values())


def test_what_a_member_has_may_be_read_before_who_it_is() -> None:
    group = ConsumerGroup("g")
    group.apply(*RECORDS[-2])
    group.apply(*RECORDS[6])

    member = group.members["m"]
    assert (member.epoch, member.instance_id) == (6, "i")
    assert group.owners == {(b"t" * 16, 0): "m", (b"t" * 16, 2): "m"}
