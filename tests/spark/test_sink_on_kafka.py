"""What a task of the sink does, against Apache Kafka: any cluster that speaks Kafka's protocol will do."""

from collections.abc import Iterator
from typing import Final

import pytest

from compat.kafka_tools.java import KafkaUnavailableError, find_kafka
from compat.kafka_tools.samples import samples
from compat.kafka_tools.server import KafkaServer
from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import SparkError
from headrace.spark.sink import TaskResult, write_batches
from headrace.spark.sink_options import SinkOptions
from spark.topics import CODECS
from unit.spark.arrow_rows import batch_of
from wire.confluent import read
from wire.requests import fresh_name

pytestmark = pytest.mark.extended

ROWS: Final = samples(300)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One that makes the topics it is asked for."""
    try:
        java = find_kafka()
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))
    settings = {"auto.create.topics.enable": "true"}
    with KafkaServer(java, tmp_path_factory.mktemp("kafka"), settings) as server:
        yield server


def write(kafka: KafkaServer, topic: str, **settings: str) -> TaskResult:
    """The rows in two batches; underscores stand for dots."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    batch = batch_of(
        key=[each.key for each in ROWS],
        value=[each.value for each in ROWS],
        headers=[list(each.headers) or None for each in ROWS],
    )
    options = SinkOptions.of({"kafka.bootstrap.servers": kafka.bootstrap, "topic": topic} | dotted)
    return write_batches(options, iter([batch.slice(0, 100), batch.slice(100)]))


@pytest.mark.parametrize("codec", CODECS)
def test_rows_of_every_shape_are_written_with_every_codec(kafka: KafkaServer, codec: str) -> None:
    topic = fresh_name("sunk")
    kafka.create_topic(topic)
    written = write(kafka, topic, kafka_compression_type=codec, kafka_batch_size="900")

    assert written.records == len(ROWS)
    assert written.offsets == {TopicPartition(topic, 0): (0, len(ROWS) - 1)}
    assert written.producer.id >= 0
    assert [
        (each.key(), each.value(), tuple(each.headers() or ())) for each in read(kafka.bootstrap, topic)
    ] == [(each.key, each.value, each.headers) for each in ROWS]


def test_a_topic_that_is_not_there_is_made(kafka: KafkaServer) -> None:
    """Kafka says that there is no such topic when it is asked for the first time, and then there is one."""
    topic = fresh_name("made")

    assert write(kafka, topic).offsets == {TopicPartition(topic, 0): (0, len(ROWS) - 1)}


def test_a_compacted_topic_refuses_rows_without_a_key(kafka: KafkaServer) -> None:
    topic = fresh_name("compacted")
    kafka.create_topic(topic, config={"cleanup.policy": "compact"})

    with pytest.raises(SparkError, match="a compacted topic wants every record to have a key"):
        write(kafka, topic)
