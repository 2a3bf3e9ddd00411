import pytest

from headrace.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from headrace.protocol.errors import ProtocolError
from headrace.protocol.schema.consumer_protocol_assignment import TopicPartition


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_is_read_as_it_was_written(version: int) -> None:
    subscription = ConsumerProtocolSubscription(topics=["orders", "payments"], user_data=b"mine")
    data = encode_subscription(subscription, version)
    assert data[:2] == bytes([0, version])
    assert decode_subscription(data) == subscription


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_read_as_it_was_written(version: int) -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="orders", partitions=[0, 2])], user_data=None
    )
    assert decode_assignment(encode_assignment(assignment, version)) == assignment


def test_a_newer_version_is_read_as_the_newest_we_know_and_what_it_adds_is_ignored() -> None:
    subscription = ConsumerProtocolSubscription(topics=["orders"], generation_id=4, rack_id="r1")
    newer = b"\x00\x09" + encode_subscription(subscription, 3)[2:] + b"and more"
    assert decode_subscription(newer) == subscription


@pytest.mark.parametrize("data", ["", "00", "ffff", "0000 7fffffff", "0003 00000000"])
def test_bytes_that_are_no_subscription_are_refused(data: str) -> None:
    with pytest.raises(ProtocolError, match="ConsumerProtocolSubscription"):
        decode_subscription(bytes.fromhex(data))


def test_a_subscription_that_would_take_long_is_not_decoded() -> None:
    many = encode_subscription(ConsumerProtocolSubscription(topics=[""] * 200_000, user_data=None), 0)

    with pytest.raises(ProtocolError, match="not decoded"):
        decode_subscription(many)
