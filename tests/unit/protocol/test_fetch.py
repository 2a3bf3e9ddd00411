from typing import Any

import pytest

from headrace.protocol import fetch
from headrace.protocol.codec import EncodeError
from headrace.protocol.errors import ProtocolError
from headrace.protocol.schema.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)

VERSIONS = pytest.mark.parametrize("version", range(4, 19))


def request(count: int = 2, **values: Any) -> FetchRequest:
    partitions = [
        FetchPartition(partition=i, fetch_offset=100 + i, partition_max_bytes=1 << 20) for i in range(count)
    ]
    topics = [FetchTopic(topic="orders", partitions=partitions)]
    given: dict[str, Any] = {"max_wait_ms": 500, "min_bytes": 1, "topics": topics}
    return FetchRequest(**given | values)


def response(**values: Any) -> FetchResponse:
    given = {"partition_index": 0, "high_watermark": 9, "aborted_transactions": None, "records": b"batch"}
    topic = FetchableTopicResponse(topic="orders", partitions=[PartitionData(**given | values)])
    return FetchResponse(responses=[topic], session_id=5)


@VERSIONS
@pytest.mark.parametrize(
    "message",
    [
        request(0),
        request(1),
        request(126),
        request(127),
        request(1, rack_id="rack-7"),
        request(1, rack_id="r" * 200),
        request(1, topics=[]),
        request(1, topics=[FetchTopic(topic="t" * 130, partitions=[])]),
        request(1, topics=[FetchTopic(topic="t", partitions=[])] * 130),
        request(1, forgotten_topics_data=[ForgottenTopic(topic="old", partitions=[1, 2])]),
        request(1, replica_id=3, replica_state=ReplicaState(replica_id=3)),
        request(1, cluster_id="cluster"),
        request(
            topics=[
                FetchTopic(
                    partitions=[
                        FetchPartition(
                            partition=1, fetch_offset=2, partition_max_bytes=3, replica_directory_id=b"d" * 16
                        )
                    ]
                )
            ]
        ),
    ],
)
def test_every_shape_is_read_as_the_compiled_codec_reads_it(version: int, message: FetchRequest) -> None:
    body = memoryview(b"".join(message.encode(version)))
    assert fetch.decode_request(body, version) == FetchRequest.decode(body, version)


@VERSIONS
@pytest.mark.parametrize(
    "message",
    [
        response(),
        response(records=None),
        response(records=b""),
        response(records=bytes(200)),
        response(records=bytes(20_000), aborted_transactions=[]),
        response(aborted_transactions=[AbortedTransaction(producer_id=1, first_offset=2)]),
        response(diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)),
        FetchResponse(responses=[], throttle_time_ms=3, error_code=4),
        FetchResponse(responses=[], node_endpoints=[NodeEndpoint(node_id=1, host="b1", port=9092)]),
    ],
)
def test_every_shape_is_written_as_the_compiled_codec_writes_it(version: int, message: FetchResponse) -> None:
    assert b"".join(fetch.encode_response(message, version)) == b"".join(message.encode(version))


@VERSIONS
def test_record_data_is_sent_as_it_is(version: int) -> None:
    records = memoryview(b"a batch")
    assert any(buffer is records for buffer in fetch.encode_response(response(records=records), version))


@pytest.mark.parametrize("version", [11, 12, 18])
def test_partitions_that_are_not_all_there_are_refused(version: int) -> None:
    body = b"".join(request(3).encode(version))
    for length in range(len(body)):
        with pytest.raises(ProtocolError, match=f"FetchRequest v{version}"):
            fetch.decode_request(memoryview(body)[:length], version)


@pytest.mark.parametrize("version", [11, 12, 18])
def test_a_response_that_does_not_fit_is_refused_by_name(version: int) -> None:
    with pytest.raises(EncodeError, match=r"partitions\[0\].high_watermark: None|is None"):
        fetch.encode_response(response(high_watermark=None), version)


@pytest.mark.parametrize("version", [12, 13, 15, 18])
def test_the_usual_shapes_take_the_fast_path(version: int) -> None:
    body = memoryview(b"".join(request(3, rack_id="rack-7").encode(version)))
    assert fetch._decode_usual(body, version) == FetchRequest.decode(body, version)
    assert b"".join(fetch._encode_usual(response(), by_id=version > 12)) == b"".join(
        response().encode(version)
    )


def a_followers_request() -> FetchRequest:
    return request(3, replica_state=ReplicaState(replica_id=3, replica_epoch=1 << 40))


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_a_follower_that_says_who_it_is_takes_the_fast_path(version: int) -> None:
    body = memoryview(b"".join(a_followers_request().encode(version)))
    assert fetch._decode_usual(body, version) == FetchRequest.decode(body, version)
    assert fetch.decode_request(body, version).replica_state.replica_epoch == 1 << 40


def test_a_followers_request_that_is_not_all_there_is_refused() -> None:
    body = b"".join(a_followers_request().encode(17))
    for length in range(len(body)):
        with pytest.raises(ProtocolError, match="FetchRequest v17"):
            fetch.decode_request(memoryview(body)[:length], 17)


THIRD = ReplicaState(replica_id=3, replica_epoch=9)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("01 01 0d 00000003 0000000000000009 00", THIRD),
        ("01 07 0d 00000003 0000000000000009 00", ReplicaState()),  # nobody knows tag 7
        ("01 01 0f 00000003 0000000000000009 01 09 00", THIRD),
        ("02 01 0d 00000003 0000000000000009 00 07 00", THIRD),
    ],
)
def test_whatever_tagged_fields_there_are_a_follower_is_known_by_its_own(
    tags: str, expected: ReplicaState
) -> None:
    body = b"".join(request(1).encode(17))
    assert body[-1] == 0, "no tagged fields"
    assert fetch.decode_request(memoryview(body[:-1] + bytes.fromhex(tags)), 17).replica_state == expected


@pytest.mark.parametrize(
    "tags", ["01 01 0d 00000003 0000000000000009 01", "02 01 0d 00000003 0000000000000009 00"]
)
def test_tagged_fields_that_are_cut_short_are_refused(tags: str) -> None:
    body = b"".join(request(1).encode(17))
    with pytest.raises(ProtocolError, match="FetchRequest v17"):
        fetch.decode_request(memoryview(body[:-1] + bytes.fromhex(tags)), 17)
