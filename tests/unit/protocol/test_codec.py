"""What the compiled codecs refuse, and how they say so."""

import re
from typing import Any

import pytest

from headrace.broker.slices import at_once
from headrace.protocol.codec import EncodeError
from headrace.protocol.errors import ProtocolError
from headrace.protocol.primitives import uvarint
from headrace.protocol.schema.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.update_features import UpdateFeaturesRequest


@pytest.mark.parametrize(
    ("version", "body", "reason"),
    [
        (4, "00000001 0005 6162", "name has 5 bytes, 2 are left"),
        (4, "00000001 8000 6162", "name has -32768 bytes, 2 are left"),
        (4, "00000001 ffff 01", "name is null and may not be"),
        (4, "fffffffe 01", "topics has -2 elements, 1 bytes are left"),
        (4, "7fffffff 01", "topics has 2147483647 elements, 1 bytes are left"),
        (4, "00000001 0002 c328 01", "can't decode byte 0xc3"),
        (4, "ffffffff 01 00", "1 bytes follow the end of the message"),
        (4, "ffffffff", "cut short"),
        (4, "", "cut short"),
        (12, "8080808080 01", "a varint is longer than 5 bytes"),
        (12, "ffffffff1f 00", "does not fit in 32 bits"),
        (12, "00 01 00 01 63 7f 00", "tagged field 99 has 127 bytes, 1 are left"),
        (12, "02" + "00" * 16 + "feff03" + "61" * 40, "a string of 65533 bytes; 32767 is the most"),
    ],
)
def test_bad_bytes_are_one_error_that_says_what_is_wrong(version: int, body: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=rf"MetadataRequest v{version}: .*{re.escape(reason)}"):
        MetadataRequest.decode(bytes.fromhex(body), version)


@pytest.mark.parametrize(
    "body",
    [
        uvarint(600_001) + b"\x01\x00" * 600_000 + bytes(4),  # topics without a name
        b"\x00" * 4 + uvarint(600_000) + b"\x63\x00" * 600_000,  # tagged fields without content
        uvarint(300_001) + b"\x01\x01\x63\x00" * 300_000 + bytes(4),  # topics with a tagged field each
    ],
    ids=["topics", "tagged fields", "both"],
)
def test_a_message_of_more_elements_than_anybody_needs_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="the message has too many elements"):
        MetadataRequest.decode(body, 9)


def test_a_large_message_is_decoded_and_encoded_in_steps() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=f"t{number}") for number in range(10_000)])
    body = b"".join(request.encode(12))

    steps = MetadataRequest.decode_in_slices(body, 12, max_elements=10_000)
    assert sum(1 for _ in steps) > 100
    assert at_once(MetadataRequest.decode_in_slices(body, 12, max_elements=10_000)) == request
    assert sum(1 for _ in request.encode_in_slices(12)) > 100
    assert b"".join(at_once(request.encode_in_slices(12))) == body


def test_a_message_that_is_decoded_in_steps_may_have_as_many_elements_as_its_reader_allows() -> None:
    body = b"".join(MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 101).encode(12))

    with pytest.raises(ProtocolError, match="topics: the message has too many elements"):
        at_once(MetadataRequest.decode_in_slices(body, 12, max_elements=100))


def test_what_is_wrong_is_said_in_the_same_words_by_a_decoder_in_steps() -> None:
    with pytest.raises(ProtocolError) as plain:
        MetadataRequest.decode(b"\x05\x00", 12)
    with pytest.raises(ProtocolError) as sliced:
        at_once(MetadataRequest.decode_in_slices(b"\x05\x00", 12, max_elements=100))

    assert str(sliced.value) == str(plain.value)


def test_one_struct_has_a_bounded_number_of_unknown_tagged_fields() -> None:
    body = b"\x00" * 4 + uvarint(5_000) + b"\x63\x00" * 5_000

    with pytest.raises(ProtocolError, match="tagged fields: the message has too many elements"):
        MetadataRequest.decode(body, 9)


def test_a_known_tagged_field_must_end_where_its_size_says() -> None:
    response = FetchResponse(responses=[], node_endpoints=())
    body = b"".join(response.encode(16))
    assert body.endswith(b"\x01\x00")
    hostile = body[:-1] + bytes.fromhex("01 00 03 01 0000")  # an empty array takes one byte, not three
    with pytest.raises(ProtocolError, match="node_endpoints does not end where its size says"):
        FetchResponse.decode(hostile, 16)


def test_any_byte_but_zero_is_true() -> None:
    assert MetadataRequest.decode(bytes.fromhex("ffffffff 07"), 4).allow_auto_topic_creation is True


def test_records_stay_slices_of_what_was_received_and_are_sent_as_they_are() -> None:
    records = memoryview(b"a batch of records")
    partition = PartitionData(partition_index=0, high_watermark=1, aborted_transactions=None, records=records)
    topic = FetchableTopicResponse(topic="orders", partitions=[partition])
    buffers = FetchResponse(responses=[topic]).encode(12)
    assert any(buffer is records for buffer in buffers)
    frame = bytearray(b"".join(buffers))
    received = FetchResponse.decode(frame, 12).responses[0].partitions[0].records
    assert isinstance(received, memoryview)
    assert received.obj is frame


def with_topic(**values: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(**{"name": None} | values)])


@pytest.mark.parametrize(
    ("message", "version", "fault"),
    [
        (MetadataRequest(topics=None), 0, "MetadataRequest.topics: is None, which v0 cannot say"),
        (with_topic(name=7), 4, "topics[0].name: 7 is no str"),
        (with_topic(name="x" * 32768), 4, "topics[0].name: 32768 bytes of text"),
        (with_topic(name="x" * 32768), 12, "topics[0].name: 32768 bytes of text"),
        (with_topic(name="\ud800"), 12, "surrogates not allowed"),
        (with_topic(topic_id=b"short"), 12, "topics[0].topic_id: b'short' is no uuid"),
        (MetadataRequest(topics=["t"]), 4, "topics[0]: 't' is no MetadataRequestTopic"),  # type: ignore[list-item]
        (MetadataRequest(topics=3), 4, "topics: 3 is no sequence"),  # type: ignore[arg-type]
        (FindCoordinatorRequest(key="g", key_type=128), 3, "key_type: 128 is no int8"),
        (FindCoordinatorRequest(key="g", key_type=1.5), 3, "key_type: 1.5 is no int8"),  # type: ignore[arg-type]
        (UpdateFeaturesRequest(feature_updates=[], timeout_ms=2**31), 1, "timeout_ms: 2147483648 is no"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_that_names_the_field(
    message: Any, version: int, fault: str
) -> None:
    with pytest.raises(EncodeError, match=re.escape(fault)):
        message.encode(version)


def test_a_version_that_does_not_exist_is_refused_both_ways() -> None:
    with pytest.raises(ProtocolError, match="MetadataRequest has no v14, only v0 to v13"):
        MetadataRequest.decode(b"", 14)
    with pytest.raises(EncodeError, match="MetadataRequest has no v-1, only v0 to v13"):
        MetadataRequest(topics=None).encode(-1)


def test_a_field_that_a_version_does_not_have_is_left_out_and_read_as_its_default() -> None:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    body = b"".join(request.encode(1))
    assert body == bytes(4)
    assert MetadataRequest.decode(body, 1).allow_auto_topic_creation is True
