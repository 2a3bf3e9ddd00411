"""One Spark session for all tests of this directory, one broker that they share, and one Apache Kafka."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compat.kafka_tools.java import KafkaUnavailableError, find_kafka
from compat.kafka_tools.server import KafkaServer
from compat.kafka_tools.written import SETTINGS as KAFKA_SETTINGS
from spark.plant import Plant
from spark.queries import Queries
from spark.registry_plant import Gateway, RegistryPlant
from spark.session import spark_session
from spark.topics import SETTINGS, fill_topics
from wire.process import BrokerProcess


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    try:
        with spark_session(tmp_path_factory.mktemp("spark")) as session:
            yield session
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A Headrace broker with the topics of `spark.topics`. At the end its log is clean."""
    with BrokerProcess(tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        fill_topics(process.bootstrap)
        yield process
        assert process.running
        assert process.complaints() == []


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """Apache Kafka, for what Headrace does not have yet."""
    try:
        java = find_kafka()
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))
    with KafkaServer(java, tmp_path_factory.mktemp("kafka"), KAFKA_SETTINGS) as server:
        yield server


@pytest.fixture
def queries(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> Iterator[Queries]:
    """Queries against the shared broker; streams that a test leaves behind are stopped."""
    yield Queries(spark, broker.bootstrap, tmp_path)
    for query in spark.streams.active:
        query.stop()


@pytest.fixture
def plant(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> Iterator[Plant]:
    yield Plant(spark, broker.bootstrap, tmp_path)
    for query in spark.streams.active:
        query.stop()


@pytest.fixture(scope="module")
def gateway(broker: BrokerProcess) -> Iterator[Gateway]:
    """A registry on the shared broker, which tests may stop and start again."""
    running = Gateway(broker.bootstrap)
    running.start()
    yield running
    running.close()


@pytest.fixture
def registry_plant(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path, gateway: Gateway
) -> Iterator[RegistryPlant]:
    yield RegistryPlant(spark, broker.bootstrap, tmp_path, gateway)
    for query in spark.streams.active:
        query.stop()
