"""The options of `df.write.format("headrace")` and its columns: what each means, which mistakes are named."""

from dataclasses import replace
from typing import Final

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.protocol.compression import Compression
from headrace.spark.batch import Batch
from headrace.spark.errors import SparkError
from headrace.spark.producer import ACKS_ALL
from headrace.spark.sink_options import BATCH_BYTES, SinkOptions, check_schema

SERVERS: Final = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def options(**given: str) -> SinkOptions:
    """Settings of clients have underscores for dots."""
    return SinkOptions.of(SERVERS | {name.replace("_", "."): value for name, value in given.items()})


def test_who_says_nothing_gets_every_record_acknowledged_and_numbered() -> None:
    found = options()

    assert (found.bootstrap, found.topic) == ("127.0.0.1:9092", None)
    assert (found.acks, found.idempotent) == (ACKS_ALL, True)
    assert (found.compression, found.batch_bytes, found.timeout_s) == (Compression.NONE, BATCH_BYTES, 120.0)


def test_every_option_is_heard() -> None:
    found = options(
        topic="orders",
        kafka_acks="1",
        kafka_compression_type="zstd",
        kafka_batch_size="1000",
        kafka_delivery_timeout_ms="2500",
    )

    assert (found.topic, found.acks, found.compression) == ("orders", 1, Compression.ZSTD)
    assert (found.batch_bytes, found.timeout_s) == (1000, 2.5)


@pytest.mark.parametrize(
    ("said", "acks", "idempotent"),
    [
        ("all", ACKS_ALL, True),
        ("-1", ACKS_ALL, True),
        ("ALL", ACKS_ALL, True),
        ("1", 1, False),
        ("0", 0, False),
    ],
)
def test_less_than_all_acknowledgements_are_not_idempotent(said: str, acks: int, idempotent: bool) -> None:
    found = options(kafka_acks=said)

    assert (found.acks, found.idempotent) == (acks, idempotent)


def test_idempotence_may_be_declined() -> None:
    found = options(kafka_enable_idempotence="false")

    assert (found.acks, found.idempotent) == (ACKS_ALL, False)


@pytest.mark.parametrize("codec", Compression)
def test_every_codec_has_its_name(codec: Compression) -> None:
    assert options(kafka_compression_type=codec.name.lower()).compression is codec


def test_names_are_the_same_in_any_letters_and_spark_may_add_its_own() -> None:
    found = SinkOptions.of(
        {"KAFKA.bootstrap.servers": "h:1", "TOPIC": "t", "Kafka.Acks": "all"}
        | {"checkpointLocation": "c", "path": "p", "queryName": "q", "includeHeaders": "true"}
    )

    assert (found.bootstrap, found.topic, found.acks) == ("h:1", "t", ACKS_ALL)


def test_exactly_once_has_its_own_options() -> None:
    found = options(
        exactlyOnce="TRUE",
        txnAppId="loader",
        txnVersion="7",
        kafka_transactional_id="loader-1",
        kafka_transaction_timeout_ms="5000",
    )

    assert found.exactly_once
    assert found.batch == Batch("loader", 7)
    assert (found.transactional_id, found.transaction_timeout_ms) == ("loader-1", 5000)
    assert not options().exactly_once


def test_settings_that_other_clients_know_do_no_harm() -> None:
    found = options(kafka_linger_ms="5", kafka_max_block_ms="100")

    assert replace(found, client={}) == replace(options(), client={})


MISTAKES: Final[dict[str, tuple[dict[str, str], str]]] = {
    "no servers": (
        {"kafka.bootstrap.servers": " "},
        "option 'kafka.bootstrap.servers': missing; expected HOST:PORT,HOST:PORT, as in 127.0.0.1:9092",
    ),
    "no address": (
        {"kafka.bootstrap.servers": "h:1,localhost"},
        "option 'kafka.bootstrap.servers': 'localhost' is not an address; expected HOST:PORT,HOST:PORT",
    ),
    "an unknown option": ({"topics": "t"}, "option 'topics': unknown; did you mean topic?"),
    "an option of the source": (
        {"subscribe": "t"},
        "option 'subscribe': cannot be set: it is for reading; name the topic with the option topic",
    ),
    "unknown acks": ({"kafka.acks": "2"}, "option 'kafka.acks': '2' is not one of all, -1, 1, 0"),
    "idempotence of less than all": (
        {"kafka.acks": "1", "kafka.enable.idempotence": "true"},
        "option 'kafka.acks': less than all is not idempotent: set kafka.enable.idempotence to false",
    ),
    "idempotence of neither kind": (
        {"kafka.enable.idempotence": "maybe"},
        "option 'kafka.enable.idempotence': 'maybe' is not one of true, false",
    ),
    "an unknown codec": (
        {"kafka.compression.type": "brotli"},
        "option 'kafka.compression.type': 'brotli' is not one of none, gzip, snappy, lz4, zstd",
    ),
    "a batch of nothing": (
        {"kafka.batch.size": "0"},
        "option 'kafka.batch.size': '0' is not an integer from 1 to 2147483647",
    ),
    "a batch larger than any": (
        {"kafka.batch.size": "9" * 5000},
        f"option 'kafka.batch.size': '{'9' * 5000}' is not an integer from 1 to 2147483647",
    ),
    "a batch in words": (
        {"kafka.batch.size": "16k"},
        "option 'kafka.batch.size': '16k' is not an integer from 1 to 2147483647",
    ),
    "no time at all": (
        {"kafka.delivery.timeout.ms": "-5"},
        "option 'kafka.delivery.timeout.ms': '-5' is not an integer from 1 to 2147483647",
    ),
    "a serializer": (
        {"kafka.value.serializer": "x.Y"},
        (
            "option 'kafka.value.serializer': cannot be set: values are bytes; encode them with "
            "functions on the column"
        ),
    ),
    "security that there is not": (
        {"kafka.security.protocol": "MAGIC"},
        "option 'kafka.security.protocol': ",
    ),
    "exactly once without idempotence": (
        {"exactlyOnce": "true", "kafka.acks": "1"},
        "option 'exactlyOnce': needs kafka.acks=all and kafka.enable.idempotence=true",
    ),
    "exactly once in other words": (
        {"exactlyOnce": "yes"},
        "option 'exactlyOnce': 'yes' is not one of true, false",
    ),
    "a transactional id without transactions": (
        {"kafka.transactional.id": "t"},
        "option 'kafka.transactional.id': is for transactions: set exactlyOnce to true",
    ),
    "an application without transactions": (
        {"txnAppId": "a", "txnVersion": "1"},
        "option 'txnAppId': is for transactions: set exactlyOnce to true",
    ),
    "an application without a version": (
        {"exactlyOnce": "true", "txnAppId": "a"},
        "option 'txnAppId': txnAppId and txnVersion identify a write together: set both",
    ),
    "a version below zero": (
        {"exactlyOnce": "true", "txnAppId": "a", "txnVersion": "-1"},
        "option 'txnVersion': '-1' is not an integer of at least 0",
    ),
    "a transactional id that no topic can be named after": (
        {"exactlyOnce": "true", "kafka.transactional.id": "a b"},
        "option 'kafka.transactional.id': 'a b' cannot be part of a topic's name: a name has",
    ),
    "a transaction timeout of nothing": (
        {"exactlyOnce": "true", "kafka.transaction.timeout.ms": "0"},
        "option 'kafka.transaction.timeout.ms': '0' is not an integer from 1 to 2147483647",
    ),
    "a topic without a name": ({"topic": ""}, "option 'topic': empty; name a topic"),
}


@pytest.mark.parametrize(("given", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_what_to_do(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SparkError) as refusal:
        SinkOptions.of(SERVERS | given)
    assert str(refusal.value).startswith(sentence)


# -- columns -----------------------------------------------------------------------------------

HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType(), nullable=False), StructField("value", BinaryType())])
)
BYTES, TEXT, NUMBER, LONG = BinaryType(), StringType(), IntegerType(), LongType()
FITTING: Final[dict[str, dict[str, DataType]]] = {
    "only values": {"value": BYTES},
    "text": {"key": TEXT, "value": TEXT},
    "everything": {"topic": TEXT, "partition": NUMBER, "key": BYTES, "value": TEXT, "headers": HEADERS},
    "what a source reads": {
        "key": BYTES,
        "value": BYTES,
        "offset": LONG,
        "timestamp": TimestampType(),
        "timestampType": NUMBER,
    },
}
UNFIT: Final[dict[str, tuple[dict[str, DataType], str]]] = {
    "no value": (
        {"key": BYTES},
        "there is no column 'value'; a record has key, value, topic, partition, headers",
    ),
    "value": ({"value": NUMBER}, "column 'value' is int, expected string or binary"),
    "key": ({"value": BYTES, "key": LONG}, "column 'key' is bigint, expected string or binary"),
    "topic": ({"value": BYTES, "topic": BYTES}, "column 'topic' is binary, expected string"),
    "partition": ({"value": BYTES, "partition": LONG}, "column 'partition' is bigint, expected int"),
    "headers": (
        {"value": BYTES, "headers": MapType(TEXT, BYTES)},
        "column 'headers' is map<string,binary>, expected array<struct<key:string,value:binary>>",
    ),
    "others": (
        {"value": BYTES, "price": LONG},
        "column 'price' is not part of a record: drop it, or put it into the value",
    ),
}


def schema(columns: dict[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize("columns", FITTING.values(), ids=FITTING.keys())
def test_columns_of_records_are_taken(columns: dict[str, DataType]) -> None:
    check_schema(schema(columns), options(topic="orders"))


@pytest.mark.parametrize(("columns", "sentence"), UNFIT.values(), ids=UNFIT.keys())
def test_columns_that_are_not_those_of_records_are_refused(
    columns: dict[str, DataType], sentence: str
) -> None:
    with pytest.raises(SparkError) as refusal:
        check_schema(schema(columns), options(topic="orders"))
    assert str(refusal.value) == sentence


def test_the_topic_is_an_option_or_a_column() -> None:
    check_schema(schema({"value": BYTES, "topic": TEXT}), options())
    with pytest.raises(SparkError) as refusal:
        check_schema(schema({"value": BYTES}), options())
    assert (
        str(refusal.value)
        == "option 'topic': missing; name the topic with this option, or in a column 'topic'"
    )
