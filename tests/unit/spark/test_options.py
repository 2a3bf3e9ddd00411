"""The options of Spark's Kafka source: what they become, and the sentence for every mistake."""

import pickle
from typing import Final

import pytest

from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import InvalidOption
from headrace.spark.options import DEFAULT_MAX_OFFSETS, Bound, Selection, SourceOptions
from headrace.tables.reader.offsets import EARLIEST, LATEST

SERVERS: Final = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
ORDERS: Final = SERVERS | {"subscribe": "orders"}


def of(**given: str) -> SourceOptions:
    return SourceOptions.of(ORDERS | given, streaming=False)


def stream_of(**given: str) -> SourceOptions:
    return SourceOptions.of(ORDERS | given, streaming=True)


def refused(given: dict[str, str], *, streaming: bool = False) -> str:
    with pytest.raises(InvalidOption) as error:
        SourceOptions.of(given, streaming=streaming)
    return str(error.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, DEFAULT_MAX_OFFSETS),
        ({"maxOffsetsPerTrigger": "7"}, 7),
        ({"maxOffsetsPerTrigger": " None "}, None),
        ({"minOffsetsPerTrigger": "3000000"}, 3_000_000),
    ],
)
def test_a_stream_reads_a_backlog_in_limited_batches(given: dict[str, str], expected: int | None) -> None:
    assert stream_of(**given).max_offsets == expected


def test_a_batch_reads_all_there_is_and_a_stream_what_comes() -> None:
    batch, stream = of(), stream_of()

    assert (batch.starting.otherwise, batch.ending.otherwise) == (EARLIEST, LATEST)
    assert stream.starting.otherwise == LATEST
    assert (batch.min_partitions, batch.max_records) == (0, 0)
    assert batch.fail_on_data_loss
    assert not batch.read_committed
    assert batch.client.get("group.id") is None


@pytest.mark.parametrize(
    ("given", "selection"),
    [
        ({"subscribe": "orders"}, Selection(topics=("orders",))),
        ({"subscribe": " orders , clicks,orders,"}, Selection(topics=("orders", "clicks"))),
        ({"subscribePattern": "or.*"}, Selection(pattern="or.*")),
        (
            {"assign": '{"orders": [1, 0]}'},
            Selection(partitions=(TopicPartition("orders", 1), TopicPartition("orders", 0))),
        ),
    ],
)
def test_what_is_read_is_said_in_one_of_three_ways(given: dict[str, str], selection: Selection) -> None:
    assert SourceOptions.of(SERVERS | given, streaming=False).selection == selection


@pytest.mark.parametrize("word", ["earliest", "EARLIEST", " Earliest "])
def test_the_words_for_offsets_may_be_written_in_any_letters(word: str) -> None:
    assert stream_of(startingOffsets=word).starting.otherwise == EARLIEST


def test_offsets_are_named_for_each_partition() -> None:
    bound = of(startingOffsets='{"orders": {"0": 5, "1": -2}}').starting

    assert bound == Bound(
        option="startingOffsets", offsets={TopicPartition("orders", 0): 5, TopicPartition("orders", 1): -2}
    )


def test_a_timestamp_for_all_counts_more_than_those_of_partitions_and_these_more_than_offsets() -> None:
    offsets = {"startingOffsets": '{"orders": {"0": 5}}', "endingOffsets": '{"orders": {"0": 9}}'}
    by_partition = {
        "startingOffsetsByTimestamp": '{"orders": {"0": 1000}}',
        "endingOffsetsByTimestamp": '{"orders": {"0": 2000}}',
    }
    for_all = {"startingTimestamp": "3000", "endingTimestamp": "4000"}

    found = of(**offsets, **by_partition)
    assert (found.starting.timestamps, found.ending.timestamps) == (
        {TopicPartition("orders", 0): 1000},
        {TopicPartition("orders", 0): 2000},
    )
    found = of(**offsets, **by_partition, **for_all)
    assert (found.starting.timestamp, found.ending.timestamp) == (3000, 4000)
    assert (found.starting.late, found.ending.late) == (None, LATEST)


def test_a_start_after_the_last_record_may_be_the_end() -> None:
    found = of(startingTimestamp="3000", startingOffsetsByTimestampStrategy="Latest")

    assert found.starting.late == LATEST


def test_every_option_arrives_whatever_the_letters() -> None:
    found = stream_of(
        MAXOFFSETSPERTRIGGER="1000",
        minOffsetsPerTrigger="10",
        maxtriggerdelay="30s",
        minPartitions=" 8 ",
        maxRecordsPerPartition="500",
        failOnDataLoss="FALSE",
        includeHeaders="true",
        groupIdPrefix="ignored",
        **{
            "fetchOffset.numRetries": "0",
            "fetchOffset.retryIntervalMs": "250",
            "kafkaConsumer.pollTimeoutMs": "1000",
            "Kafka.Group.ID": "pipeline",
            "kafka.max.partition.fetch.bytes": "65536",
        },
    )

    assert (found.max_offsets, found.min_offsets, found.max_delay_s) == (1000, 10, 30.0)
    assert (found.min_partitions, found.max_records) == (8, 500)
    assert not found.fail_on_data_loss
    assert (found.retries, found.retry_s) == (0, 0.25)
    assert found.client.get("group.id") == "pipeline"
    assert (found.fetch_bytes, found.poll_timeout_s) == (65536, 1.0)
    assert found.bootstrap == "127.0.0.1:9092"


def test_the_smaller_limit_of_a_fetch_counts() -> None:
    found = of(**{"kafka.fetch.max.bytes": "1000", "kafka.fetch.max.wait.ms": "20", "kafka.client.rack": "a"})

    assert (found.fetch_bytes, found.fetch_wait_ms, found.fetching.rack) == (1000, 20, "a")


@pytest.mark.parametrize("name", ["isolation.level", "kafka.isolation.level"])
def test_the_isolation_level_is_found_with_and_without_its_prefix(name: str) -> None:
    assert of(**{name: "read_committed"}).read_committed
    assert not of(**{name: "READ_UNCOMMITTED"}).read_committed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("30s", 30.0), ("15m", 900.0), ("2 min", 120.0), ("1h", 3600.0), ("1d", 86400.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert stream_of(maxTriggerDelay=text).max_delay_s == seconds


MISTAKES: Final[dict[str, tuple[dict[str, str], str]]] = {
    "no servers": ({"subscribe": "t"}, "option 'kafka.bootstrap.servers': missing"),
    "empty servers": (ORDERS | {"kafka.bootstrap.servers": " "}, "missing; expected HOST:PORT"),
    "no port": (ORDERS | {"kafka.bootstrap.servers": "a:1,b"}, "'b' is not an address; expected HOST:PORT"),
    "no such port": (ORDERS | {"kafka.bootstrap.servers": "a:65536"}, "'a:65536' is not an address"),
    "nothing to read": (
        SERVERS,
        "option 'subscribe': expected exactly one of subscribe, subscribePattern and",
    ),
    "too much to read": (
        ORDERS | {"assign": '{"orders": [0]}'},
        "subscribePattern and assign, not subscribe and assign",
    ),
    "no topic": (SERVERS | {"subscribe": " , "}, "option 'subscribe': no topic is named"),
    "no expression": (SERVERS | {"subscribePattern": "(a"}, "'(a' cannot be matched: missing )"),
    "no assignment": (SERVERS | {"assign": "orders"}, "option 'assign': not JSON"),
    "no offsets": (
        ORDERS | {"startingOffsets": "17"},
        "option 'startingOffsets': '17' is not earliest, latest or JSON",
    ),
    "broken offsets": (ORDERS | {"startingOffsets": '{"orders"'}, "option 'startingOffsets': not JSON"),
    "a batch from the end": (
        ORDERS | {"startingOffsets": "latest"},
        "option 'startingOffsets': a batch cannot start at the latest offset",
    ),
    "a partition from the end": (
        ORDERS | {"startingOffsets": '{"orders": {"0": -1}}'},
        "option 'startingOffsets': a batch cannot start at the latest offset",
    ),
    "a batch to the beginning": (
        ORDERS | {"endingOffsets": "earliest"},
        "option 'endingOffsets': a batch cannot end at the earliest offset",
    ),
    "a partition to the beginning": (
        ORDERS | {"endingOffsets": '{"orders": {"0": -2}}'},
        "option 'endingOffsets': a batch cannot end at the earliest offset",
    ),
    "no timestamp": (
        ORDERS | {"startingTimestamp": "2026-01-01"},
        "option 'startingTimestamp': '2026-01-01' is not an integer of at least 0",
    ),
    "a negative timestamp": (ORDERS | {"endingTimestamp": "-5"}, "'-5' is not an integer of at least 0"),
    "a timestamp of too many digits": (
        ORDERS | {"endingTimestamp": "9" * 19},
        "is not an integer of at least 0",
    ),
    "no timestamps": (
        ORDERS | {"startingOffsetsByTimestamp": '{"orders": {"0": -1}}'},
        "option 'startingOffsetsByTimestamp': -1 of orders-0 is not a timestamp in milliseconds",
    ),
    "no strategy": (
        ORDERS | {"startingOffsetsByTimestampStrategy": "earliest"},
        "option 'startingOffsetsByTimestampStrategy': 'earliest' is not one of error, latest",
    ),
    "no number": (ORDERS | {"minPartitions": "--5"}, "'--5' is not an integer of at least 1"),
    "a number too small": (ORDERS | {"maxOffsetsPerTrigger": "0"}, "'0' is not an integer of at least 1"),
    "no fetch size": (
        ORDERS | {"kafka.max.partition.fetch.bytes": "1MB"},
        "option 'kafka.max.partition.fetch.bytes': '1MB' is not an integer of at least 1",
    ),
    "no duration": (
        ORDERS | {"maxTriggerDelay": "soon"},
        "option 'maxTriggerDelay': 'soon' is not a duration",
    ),
    "less at most than at least": (
        ORDERS | {"minOffsetsPerTrigger": "11", "maxOffsetsPerTrigger": "10"},
        "option 'minOffsetsPerTrigger': 11 is more than maxOffsetsPerTrigger, 10",
    ),
    "an empty expression": (SERVERS | {"subscribePattern": " "}, "option 'subscribePattern': empty"),
    "a start after the end": (
        ORDERS | {"startingOffsets": '{"orders": {"0": 9}}', "endingOffsets": '{"orders": {"0": 8}}'},
        "option 'startingOffsets': 9 of orders-0 is after its end, 8 in endingOffsets",
    ),
    "a time after the end": (
        ORDERS
        | {
            "startingOffsetsByTimestamp": '{"orders": {"0": 9}}',
            "endingOffsetsByTimestamp": '{"orders": {"0": 8}}',
        },
        "option 'startingOffsetsByTimestamp': 9 of orders-0 is after its end",
    ),
    "ends of other partitions": (
        ORDERS | {"startingOffsets": '{"orders": {"0": 1}}', "endingOffsets": '{"orders": {"1": 8}}'},
        "option 'endingOffsets': orders-0 is in one of startingOffsets and this alone",
    ),
    "an option of the sink": (ORDERS | {"topic": "x"}, "option 'topic': cannot be set: it is for writing"),
    "a setting of the session": (
        ORDERS | {"spark.kafka.consumer.cache.capacity": "5"},
        "cannot be set: it is a setting of the Spark session for Spark's own connector",
    ),
    "an unknown setting": (
        ORDERS | {"kafka.max.partition.fetch.byte": "1"},
        "option 'kafka.max.partition.fetch.byte': there is no such setting of Kafka's clients; did you mean",
    ),
    "no flag": (ORDERS | {"failOnDataLoss": "no"}, "option 'failOnDataLoss': 'no' is not one of true, false"),
    "no level": (ORDERS | {"isolation.level": "x"}, "'x' is not one of read_uncommitted, read_committed"),
    "an unknown option": (
        ORDERS | {"minPartition": "3"},
        "option 'minPartition': unknown; did you mean minPartitions?",
    ),
    "an option like none": (
        ORDERS | {"zzz": "3"},
        "option 'zzz': unknown; expected kafka.bootstrap.servers, subscribe,",
    ),
    "servers without their prefix": (
        ORDERS | {"bootstrap.servers": "a:1"},
        "option 'bootstrap.servers': unknown; did you mean kafka.bootstrap.servers?",
    ),
    "a protocol that is none": (
        ORDERS | {"kafka.security.protocol": "TELEPATHY"},
        "option 'kafka.security.protocol': ",
    ),
    **{
        setting: (ORDERS | {setting: "x"}, f"option '{setting}': cannot be set: {why}")
        for setting, why in {
            "kafka.auto.offset.reset": "use startingOffsets",
            "kafka.key.deserializer": "keys are bytes; decode them",
            "kafka.value.deserializer": "values are bytes; decode them",
            "kafka.key.serializer": "keys are bytes; encode them",
            "kafka.value.serializer": "values are bytes; encode them",
            "kafka.enable.auto.commit": "progress is kept in the query's checkpoint",
            "kafka.interceptor.classes": "Java classes cannot be called",
        }.items()
    },
}


@pytest.mark.parametrize(("given", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_has_its_sentence(given: dict[str, str], sentence: str) -> None:
    assert sentence in refused(given)


def test_the_plan_has_references_and_not_what_they_refer_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "wonderland")
    monkeypatch.setenv("RACK", "eu-1a")
    found = of(
        **{
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "alice",
            "kafka.sasl.password": "${env:KAFKA_PASSWORD}",
            "kafka.client.rack": "${env:RACK}",
        }
    )

    assert b"wonderland" not in pickle.dumps(found)
    assert found.fetching.rack == "eu-1a"
    assert found.security.sasl is not None
    assert found.security.sasl.password == "wonderland"
    monkeypatch.setenv("KAFKA_PASSWORD", "changed")
    assert found.security.sasl.password == "changed"  # each process resolves it again


@pytest.mark.parametrize(
    ("name", "reference", "sentence"),
    [
        (
            "kafka.bootstrap.servers",
            "${env:KAFKA_PASSWORD}",
            "the value of ${env:KAFKA_PASSWORD} is not valid",
        ),
        ("kafka.fetch.max.bytes", "${env:KAFKA_PASSWORD}", "the value of ${env:KAFKA_PASSWORD} is not valid"),
        ("kafka.isolation.level", "${env:KAFKA_PASSWORD}", "the value of ${env:KAFKA_PASSWORD} is not valid"),
        ("kafka.client.rack", "${env:ABSENT_HERE}", "refers to ${env:ABSENT_HERE}, which is not set here"),
        (
            "kafka.security.protocol",
            "${env:KAFKA_PASSWORD}",
            "refers to ${env:KAFKA_PASSWORD}, whose value is",
        ),
    ],
)
def test_what_a_reference_refers_to_is_not_shown(
    name: str, reference: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "wonderland")
    said = refused(ORDERS | {name: reference})

    assert f"option '{name}': {sentence}" in said
    assert "wonderland" not in said


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    assert f"option '{name}': a stream has no end" in refused(ORDERS | {name: "1"}, streaming=True)
