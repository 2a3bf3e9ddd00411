"""The messages that bench/protocol.py measures, made and handled by all three libraries alike."""

import io
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from headrace.protocol.api import ApiKey, decode_request, encode_response
from headrace.protocol.schema import fetch, metadata, produce

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # how kafka-python opens its schema files
    from kafka.protocol.consumer import FetchRequest, FetchResponse
    from kafka.protocol.metadata import MetadataResponse
    from kafka.protocol.producer import ProduceRequest, ProduceResponse

KIB, MIB = 1 << 10, 1 << 20
PRODUCE, FETCH, METADATA = 9, 12, 12  # the first flexible Produce and Fetch; Metadata with topic ids
NO_TIME = timedelta(0)

kio_produce: Any = import_module(f"kio.schema.produce.v{PRODUCE}.response")
kio_fetch: Any = import_module(f"kio.schema.fetch.v{FETCH}.response")
kio_metadata: Any = import_module(f"kio.schema.metadata.v{METADATA}.response")


class Contenders(NamedTuple):
    headrace: Callable[[], Any]
    kio: Callable[[], Any]
    kafka_python: Callable[[], Any]


def cases() -> Iterator[tuple[str, Contenders]]:
    sizes = {"1 x 16 KiB": (1, 16 * KIB), "1 x 1 MiB": (1, MIB), "12 x 16 KiB": (12, 16 * KIB)}
    for title, (count, size) in sizes.items():
        yield f"Produce v{PRODUCE} parse, {title}", produce_request(count, size)
    for count in (1, 12):
        yield f"Produce v{PRODUCE} response, {count} partitions", produce_response(count)
    for count in (1, 12, 100):
        yield f"Fetch v{FETCH} parse, {count} partitions", fetch_request(count)
    for title in ("12 x 16 KiB", "1 x 1 MiB"):
        yield f"Fetch v{FETCH} response, {title}", fetch_response(*sizes[title])
    yield f"Metadata v{METADATA} response, 200 topics x 12", metadata_response(200, 12)


def parsers(key: ApiKey, version: int, message: Any, kafka_python_class: Any) -> Contenders:
    body = b"".join(message.encode(version))
    frame = memoryview(bytearray(body))
    kio_module: Any = import_module(f"kio.schema.{key.name.lower()}.v{version}.request")
    kio_read = entity_reader(getattr(kio_module, type(message).__name__))
    return Contenders(
        headrace=lambda: decode_request(key, version, frame),
        kio=lambda: kio_read(body, 0),
        kafka_python=lambda: kafka_python_class.decode(body, version=version),
    )


def writers(key: ApiKey, version: int, make: Contenders) -> Contenders:
    """Makes and writes; checks first that all three write the same bytes."""
    kio_write = entity_writer(type(make.kio()))

    def headrace() -> Any:
        return encode_response(key, version, make.headrace())

    def kio() -> Any:
        out = io.BytesIO()
        kio_write(out, make.kio())
        return out.getvalue()

    def kafka_python() -> Any:
        return make.kafka_python().encode(version=version)

    assert b"".join(headrace()) == kio() == kafka_python()
    return Contenders(headrace, kio, kafka_python)


def produce_request(count: int, size: int) -> Contenders:
    partitions = [produce.PartitionProduceData(index=i, records=bytes(size)) for i in range(count)]
    topic = produce.TopicProduceData(name="orders", partition_data=partitions)
    request = produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    return parsers(ApiKey.PRODUCE, PRODUCE, request, ProduceRequest)


def fetch_request(count: int) -> Contenders:
    partitions = [
        fetch.FetchPartition(partition=i, fetch_offset=1000, partition_max_bytes=MIB) for i in range(count)
    ]
    topic = fetch.FetchTopic(topic="orders", partitions=partitions)
    request = fetch.FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic])
    return parsers(ApiKey.FETCH, FETCH, request, FetchRequest)


def produce_response(count: int) -> Contenders:
    def headrace() -> Any:
        partitions = [produce.PartitionProduceResponse(index=i, base_offset=1000) for i in range(count)]
        topic = produce.TopicProduceResponse(name="orders", partition_responses=partitions)
        return produce.ProduceResponse(responses=[topic])

    def kio() -> Any:
        partitions = tuple(
            kio_produce.PartitionProduceResponse(
                index=i, error_code=ErrorCode.none, base_offset=1000, record_errors=()
            )
            for i in range(count)
        )
        topic = kio_produce.TopicProduceResponse(name="orders", partition_responses=partitions)
        return kio_produce.ProduceResponse(responses=(topic,), throttle_time=NO_TIME)

    def kafka_python() -> Any:
        topic_class = ProduceResponse.TopicProduceResponse
        partitions = [
            topic_class.PartitionProduceResponse(version=PRODUCE, index=i, base_offset=1000)
            for i in range(count)
        ]
        topic = topic_class(version=PRODUCE, name="orders", partition_responses=partitions)
        return ProduceResponse(version=PRODUCE, responses=[topic])

    return writers(ApiKey.PRODUCE, PRODUCE, Contenders(headrace, kio, kafka_python))


def fetch_response(count: int, size: int) -> Contenders:
    records = bytes(size)
    view = memoryview(records)

    def headrace() -> Any:
        partitions = [
            fetch.PartitionData(
                partition_index=i, high_watermark=1000, aborted_transactions=None, records=view
            )
            for i in range(count)
        ]
        topic = fetch.FetchableTopicResponse(topic="orders", partitions=partitions)
        return fetch.FetchResponse(responses=[topic])

    def kio() -> Any:
        partitions = tuple(
            kio_fetch.PartitionData(
                partition_index=i,
                error_code=ErrorCode.none,
                high_watermark=1000,
                aborted_transactions=None,
                records=records,
            )
            for i in range(count)
        )
        topic = kio_fetch.FetchableTopicResponse(topic="orders", partitions=partitions)
        return kio_fetch.FetchResponse(throttle_time=NO_TIME, error_code=ErrorCode.none, responses=(topic,))

    def kafka_python() -> Any:
        topic_class = FetchResponse.FetchableTopicResponse
        partitions = [
            topic_class.PartitionData(
                version=FETCH,
                partition_index=i,
                high_watermark=1000,
                aborted_transactions=None,
                records=records,
            )
            for i in range(count)
        ]
        topic = topic_class(version=FETCH, topic="orders", partitions=partitions)
        return FetchResponse(version=FETCH, responses=[topic])

    return writers(ApiKey.FETCH, FETCH, Contenders(headrace, kio, kafka_python))


def metadata_response(topic_count: int, count: int) -> Contenders:
    names = [f"topic-{i}" for i in range(topic_count)]
    nodes, topic_id = (1, 2, 3), UUID(int=7)

    def headrace() -> Any:
        topics = [
            metadata.MetadataResponseTopic(
                name=name,
                topic_id=topic_id.bytes,
                partitions=[
                    metadata.MetadataResponsePartition(
                        partition_index=i, leader_id=1, replica_nodes=nodes, isr_nodes=nodes
                    )
                    for i in range(count)
                ],
            )
            for name in names
        ]
        return metadata.MetadataResponse(brokers=[], topics=topics)

    def kio() -> Any:
        topics = tuple(
            kio_metadata.MetadataResponseTopic(
                error_code=ErrorCode.none,
                name=name,
                topic_id=topic_id,
                partitions=tuple(
                    kio_metadata.MetadataResponsePartition(
                        error_code=ErrorCode.none,
                        partition_index=i,
                        leader_id=1,
                        replica_nodes=nodes,
                        isr_nodes=nodes,
                    )
                    for i in range(count)
                ),
            )
            for name in names
        )
        return kio_metadata.MetadataResponse(throttle_time=NO_TIME, brokers=(), topics=topics)

    def kafka_python() -> Any:
        topic_class = MetadataResponse.MetadataResponseTopic
        topics = [
            topic_class(
                version=METADATA,
                name=name,
                topic_id=topic_id,
                partitions=[
                    topic_class.MetadataResponsePartition(
                        version=METADATA, partition_index=i, leader_id=1, replica_nodes=nodes, isr_nodes=nodes
                    )
                    for i in range(count)
                ],
            )
            for name in names
        ]
        return MetadataResponse(version=METADATA, brokers=[], topics=topics)

    return writers(ApiKey.METADATA, METADATA, Contenders(headrace, kio, kafka_python))
