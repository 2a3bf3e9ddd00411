from typing import Any

import pytest

from headrace.protocol import produce
from headrace.protocol.codec import EncodeError
from headrace.protocol.errors import ProtocolError
from headrace.protocol.schema.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

VERSIONS = pytest.mark.parametrize("version", range(3, 14))


def request(*sizes: int, **values: Any) -> ProduceRequest:
    partitions = [PartitionProduceData(index=i, records=bytes(size)) for i, size in enumerate(sizes)]
    topic = TopicProduceData(name="orders", partition_data=partitions)
    given: dict[str, Any] = {"acks": -1, "timeout_ms": 30_000, "topic_data": [topic]}
    return ProduceRequest(**given | values)


def response(**values: Any) -> ProduceResponse:
    partition = PartitionProduceResponse(**{"index": 0, "base_offset": 41} | values)
    return ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=[partition])])


@VERSIONS
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 2_097_150, 2_097_152])
def test_record_data_of_any_size_is_a_slice_of_the_frame(version: int, size: int) -> None:
    frame = bytearray(b"".join(request(size, 3).encode(version)))
    decoded = produce.decode_request(memoryview(frame), version)
    first, second = decoded.topic_data[0].partition_data
    assert isinstance(first.records, memoryview)
    assert first.records.obj is frame
    assert (len(first.records), len(second.records or b"")) == (size, 3)


@VERSIONS
@pytest.mark.parametrize(
    "message",
    [
        request(),
        request(5, 6, transactional_id="payments"),
        request(5, transactional_id="t" * 200),
        request(5, topic_data=[]),
        request(5, topic_data=[TopicProduceData(name="n" * 200, partition_data=[])]),
        request(5, topic_data=[TopicProduceData(name="a", partition_data=[])] * 150),
        request(*[2] * 150),
        request(
            topic_data=[
                TopicProduceData(name="nothing", partition_data=[PartitionProduceData(index=0, records=None)])
            ]
        ),
    ],
)
def test_every_shape_is_read_as_the_compiled_codec_reads_it(version: int, message: ProduceRequest) -> None:
    body = memoryview(b"".join(message.encode(version)))
    assert produce.decode_request(body, version) == ProduceRequest.decode(body, version)


@VERSIONS
@pytest.mark.parametrize(
    "message",
    [
        response(),
        response(error_code=3, error_message="no such partition"),
        response(current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=4)),
        ProduceResponse(responses=[], throttle_time_ms=9),
        ProduceResponse(responses=[], node_endpoints=[NodeEndpoint(node_id=1, host="b1", port=9092)]),
    ],
)
def test_every_shape_is_written_as_the_compiled_codec_writes_it(
    version: int, message: ProduceResponse
) -> None:
    assert b"".join(produce.encode_response(message, version)) == b"".join(message.encode(version))


@pytest.mark.parametrize("version", [8, 9, 13])
def test_record_data_that_claims_more_than_the_frame_is_refused(version: int) -> None:
    body = b"".join(request(300).encode(version))
    with pytest.raises(ProtocolError, match=f"ProduceRequest v{version}"):
        produce.decode_request(memoryview(body)[:-100], version)


@pytest.mark.parametrize("version", [8, 9, 13])
def test_a_response_that_does_not_fit_is_refused_by_name(version: int) -> None:
    with pytest.raises(EncodeError, match=r"partition_responses\[0\].base_offset: 1.5 is no int64"):
        produce.encode_response(response(base_offset=1.5), version)


def test_a_topic_id_must_have_16_bytes() -> None:
    topic = TopicProduceResponse(topic_id=b"short", partition_responses=[])
    with pytest.raises(EncodeError, match=r"responses\[0\].topic_id"):
        produce.encode_response(ProduceResponse(responses=[topic]), 13)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ProtocolError, match="no v14"):
        produce.decode_request(memoryview(b""), 14)
    with pytest.raises(EncodeError, match="no v2"):
        produce.encode_response(response(), 2)


@pytest.mark.parametrize("version", [9, 12, 13])
def test_the_usual_shapes_take_the_fast_path(version: int) -> None:
    body = memoryview(b"".join(request(5, 20_000, transactional_id="payments").encode(version)))
    assert produce._decode_usual(body, by_id=version == 13) == ProduceRequest.decode(body, version)
    assert produce._encode_usual(response(), by_id=version == 13) == b"".join(response().encode(version))
