"""`compression.type` of a topic: what producers send is kept in it, and every client reads it."""

import pytest

from headrace.protocol.compression import Compression
from headrace.protocol.errors import ErrorCode
from support.records import headers_of, make_batch
from wire.confluent import make_topic, read, send, sent_offsets
from wire.kafka_python import KafkaConsumer, TopicPartition
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic, fetch, fetch_request, fresh_name, produce

NAMES = {each.name.lower(): each for each in Compression} | {"uncompressed": Compression.NONE}
VALUES = [b"value %d " % number * 20 for number in range(50)]


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_other_peoples_clients_write_and_read_it(broker: BrokerProcess, raw: RawClient, wanted: str) -> None:
    topic = fresh_name("packed")
    make_topic(broker.bootstrap, topic, compression_type=wanted)
    for sent in ("none", "gzip", "snappy", "lz4", "zstd"):
        messages = [{"value": value} for value in VALUES]
        sent_offsets(send(broker.bootstrap, topic, messages, compression_type=sent, linger_ms=50))

    stored = headers_of(fetch(raw, topic).records or b"")
    assert {header.compression for header in stored} == {NAMES[wanted]}
    assert [each.value() for each in read(broker.bootstrap, topic)] == VALUES * 5
    assert read_by_kafka_python(broker.bootstrap, topic, len(VALUES) * 5) == VALUES * 5


def test_clients_that_are_too_old_for_zstd_are_told_so(raw: RawClient) -> None:
    topic = fresh_name("packed")
    create_topic(raw, topic, compression_type="zstd")
    produce(raw, topic, make_batch(3))

    refused, taken = (
        raw.ask(fetch_request(topic), version).responses[0].partitions[0] for version in (9, 10)
    )

    assert (refused.error_code, refused.records or b"") == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b"")
    assert (taken.error_code, bool(taken.records)) == (ErrorCode.NONE, True)


def read_by_kafka_python(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return [message.value for _, message in zip(range(count), consumer, strict=False)]
    finally:
        consumer.close()
