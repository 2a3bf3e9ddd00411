"""Produce (key 0), v3-v13, coded by hand for speed: every produced record passes through it.

Usual requests take the fast path: a flexible version, no tagged fields, no errors to
describe. All others, including malformed ones, go to the compiled codec, which handles every version and
explains errors.

Versions: v3 record batches, transactions; v5 log start offset; v8 errors by record; v9 flexible;
v10 current leader and its address; v13 topic ids.
"""

import struct
from collections.abc import Generator
from struct import Struct
from typing import Any, Final

from headrace.protocol.compiled.structs import all_defaults
from headrace.protocol.fields import ZERO_UUID, Buffer
from headrace.protocol.primitives import Unusual, topic_head, uvarint, uvarint_tail
from headrace.protocol.schema.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_FLEXIBLE: Final = range(9, 14)
_WITH_TOPIC_ID: Final = 13
_NO_LEADER: Final = all_defaults(LeaderIdAndEpoch)

_new: Any = object.__new__
_unpack_head = Struct(">hiB").unpack_from  # acks, timeout, topics + 1
_unpack_partition = Struct(">iBBB").unpack_from  # index, the three bytes that most sizes take
_pack_partition = Struct(">ihqqq3s").pack
_NOTHING_MORE: Final = b"\1\0\0"  # no record errors, no message, no tagged fields
_pack_tail = Struct(">ix").pack  # throttle time, no tagged fields


def decode_request(body: memoryview, version: int) -> ProduceRequest:
    """Decode the request in `body`; record data are views of it. Raise ProtocolError if it is malformed."""
    if version not in _FLEXIBLE:
        return ProduceRequest.decode(body, version)
    try:
        usual: ProduceRequest = _decode_usual(body, by_id=version >= _WITH_TOPIC_ID)
    except (Unusual, struct.error, IndexError, ValueError):
        return ProduceRequest.decode(body, version)  # handles every request, and explains errors
    return usual


def decode_request_in_slices(
    body: memoryview, version: int, max_elements: int, structs: list[Any] | None = None
) -> Generator[None, None, ProduceRequest]:
    """Decode in steps. A large request has mostly records; usually it has few partitions."""
    if version in _FLEXIBLE:
        try:
            usual: ProduceRequest = _decode_usual(body, by_id=version >= _WITH_TOPIC_ID)
        except (Unusual, struct.error, IndexError, ValueError):
            yield
        else:
            return usual
    return (yield from ProduceRequest.decode_in_slices(body, version, max_elements, structs))


def _decode_usual(buf: memoryview, *, by_id: bool) -> Any:
    size = len(buf)
    i = max(buf[0], 1)  # a transactional id that is truncated fails at the next byte
    if i > 127:
        raise Unusual
    transactional_id = buf[1:i].tobytes().decode() if buf[0] else None
    acks, timeout_ms, topic_count = _unpack_head(buf, i)
    i += 7
    if not 0 < topic_count < 128:
        raise Unusual
    topics = []
    for _ in range(topic_count - 1):
        topic = _new(TopicProduceData)
        if by_id:
            j = i + 16
            topic.name, topic.topic_id = "", buf[i:j].tobytes()
        else:
            j = i + buf[i]
            if not i < j < i + 128:
                raise Unusual
            topic.name, topic.topic_id = buf[i + 1 : j].tobytes().decode(), ZERO_UUID
        topic.partition_data, i = _partitions(buf, j, size)
        topics.append(topic)
    if i + 1 != size or buf[i]:
        raise Unusual
    request = _new(ProduceRequest)
    request.transactional_id = transactional_id
    request.acks = acks
    request.timeout_ms = timeout_ms
    request.topic_data = topics
    return request


def _partitions(buf: memoryview, i: int, size: int) -> tuple[list[PartitionProduceData], int]:
    """Return the partitions of the topic at `i`, and the position after that topic."""
    count = buf[i]
    i += 1
    if not 0 < count < 128:
        raise Unusual
    partitions = []
    for _ in range(count - 1):
        index, n, second, third = _unpack_partition(buf, i)  # there are 8 bytes, even with null records
        if n < 128:
            i += 5
        elif second < 128:
            n, i = n & 127 | second << 7, i + 6
        elif third < 128:
            n, i = n & 127 | (second & 127) << 7 | third << 14, i + 7
        else:
            n, i = uvarint_tail(buf, i + 5, n)
        j = i + n - 1
        if not i <= j < size or buf[j]:  # null, too long, or followed by tagged fields
            raise Unusual
        partition = _new(PartitionProduceData)
        partition.index = index
        partition.records = buf[i:j]
        partitions.append(partition)
        i = j + 1
    if buf[i]:
        raise Unusual
    return partitions, i + 1


def encode_response(response: ProduceResponse, version: int) -> list[Buffer]:
    """Return the buffers of the response's body; raise EncodeError if a field is invalid."""
    if version not in _FLEXIBLE or response.node_endpoints:
        return response.encode(version)
    try:
        return [_encode_usual(response, by_id=version >= _WITH_TOPIC_ID)]
    except (Unusual, struct.error, AttributeError, TypeError, ValueError):
        return response.encode(version)  # handles every response, or names the invalid field


def _encode_usual(response: ProduceResponse, *, by_id: bool) -> bytes:
    out = bytearray(uvarint(len(response.responses) + 1))
    for topic in response.responses:
        out += topic_head(topic.name, topic.topic_id, len(topic.partition_responses), by_id=by_id)
        for partition in topic.partition_responses:
            if (
                partition.error_message is not None
                or partition.record_errors
                or partition.current_leader is not _NO_LEADER
            ):
                raise Unusual
            out += _pack_partition(
                partition.index,
                partition.error_code,
                partition.base_offset,
                partition.log_append_time_ms,
                partition.log_start_offset,
                _NOTHING_MORE,
            )
        out.append(0)
    out += _pack_tail(response.throttle_time_ms)
    return bytes(out)
