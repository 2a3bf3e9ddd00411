"""TLS and SASL of our own client, against Apache Kafka: in Java's settings and in librdkafka's."""

import pickle
import time
import traceback
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from compat.secured_kafka import KEY_PASSWORD, PASSWORD, Files, SecuredKafka
from compat.secured_settings import MISTAKES, TLS, USER, WAYS, WRONG
from headrace.client.errors import ClientError, Refused
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import Security
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, encode_batch, keys_and_values
from headrace.protocol.schema.metadata import MetadataRequest
from headrace.spark.options import SourceOptions
from headrace.spark.producer import BatchProducer
from headrace.tables.reader.cluster import CONNECT_S, ClusterConnections
from headrace.tables.reader.errors import ReadError
from headrace.tables.reader.fetcher import Fetcher
from headrace.tables.reader.offsets import EARLIEST, LATEST, Range

TIMEOUT_S: Final = 30
ORDERS: Final = TopicPartition("orders", 0)
LARGE: Final = TopicPartition("large", 0)
BRIEF: Final = TopicPartition("brief", 0)


def add(producing: BatchProducer, place: TopicPartition, values: list[bytes]) -> None:
    records = [Record(key=None, value=each, timestamp=1) for each in values]
    producing.add(place, encode_batch(records)[HEADER_SIZE:], len(records), 1)


def write(
    cluster: ClusterConnections, place: TopicPartition, values: list[bytes], *, at_a_time: int
) -> Range:
    """Where the values are then."""
    producing = BatchProducer(cluster)
    try:
        for at in range(0, len(values), at_a_time):
            add(producing, place, values[at : at + at_a_time])
        first, last = producing.flush()[place]
    finally:
        producing.close()
    return Range(place, first, last + 1)


def read(cluster: ClusterConnections, wanted: Range) -> list[bytes | None]:
    batches = Fetcher(cluster, wanted)
    return [bytes(value or b"") for data, header in batches for _, value in keys_and_values(data, header)]


@pytest.mark.parametrize("way", WAYS)
def test_a_topic_is_found_written_and_read(
    secured_kafka: SecuredKafka, secured_files: Files, way: str
) -> None:
    listener, settings = WAYS[way]
    given = {f"kafka.{name}": value for name, value in secured_files.settings(settings).items()}
    given |= {"kafka.bootstrap.servers": secured_kafka.addresses[listener], "subscribe": ORDERS.topic}
    options = pickle.loads(pickle.dumps(SourceOptions.of(given, streaming=False)))  # as Spark sends them
    cluster = ClusterConnections(options.bootstrap, options.security)
    try:
        assert cluster.topics([ORDERS.topic]) == {ORDERS.topic: [0]}
        before = cluster.offsets({ORDERS: LATEST})[ORDERS]
        values = [f"{way} {number}".encode() for number in range(10)]
        written = write(cluster, ORDERS, values, at_a_time=3)
        assert written == Range(ORDERS, before, before + 10)
        assert cluster.offsets({ORDERS: EARLIEST}) == {ORDERS: 0}
        assert read(cluster, written) == values
    finally:
        cluster.close()


@pytest.mark.parametrize("way", WAYS)
def test_librdkafka_connects_with_the_same_settings(
    secured_kafka: SecuredKafka, secured_files: Files, way: str
) -> None:
    listener, settings = WAYS[way]
    bootstrap = {"bootstrap.servers": secured_kafka.addresses[listener]}
    connection = ConnectionSettings.of(secured_files.settings(settings) | bootstrap)
    connection.check()
    admin = AdminClient(connection.librdkafka() | {"log_level": 0})
    assert ORDERS.topic in admin.list_topics(timeout=TIMEOUT_S).topics


def test_a_brokers_name_may_be_connected_to(secured_kafka: SecuredKafka, secured_files: Files) -> None:
    by_name = secured_kafka.addresses["TLS"].replace("127.0.0.1", "localhost")
    with Brokers(ConnectionSettings(by_name, Security.of(secured_files.settings(TLS)))) as brokers:
        assert [each.node_id for each in brokers.metadata().brokers] == [1]


def test_many_megabytes_go_through_tls(secured_kafka: SecuredKafka, secured_files: Files) -> None:
    cluster = ClusterConnections(secured_kafka.addresses["TLS"], Security.of(secured_files.settings(TLS)))
    values = [number.to_bytes(2) * 25_000 for number in range(400)]
    try:
        written = write(cluster, LARGE, values, at_a_time=10)
        assert read(cluster, written) == values
    finally:
        cluster.close()


def test_when_a_session_ends_another_is_begun_and_nothing_is_written_twice(
    secured_kafka: SecuredKafka, secured_files: Files
) -> None:
    cluster = ClusterConnections(
        secured_kafka.addresses["BRIEF"], Security.of(secured_files.settings(f"{USER} sasl.mechanism=PLAIN"))
    )
    producing = BatchProducer(cluster)
    values: list[bytes] = []
    connections: set[int] = set()  # Kafka hangs up on those whose session is over
    deadline = time.monotonic() + 60
    try:
        while len(connections) < 3:
            assert time.monotonic() < deadline, connections
            values.append(str(len(values)).encode())
            add(producing, BRIEF, values[-1:])
            first, last = producing.flush()[BRIEF]
            connections |= {
                leader.connection._socket.getsockname()[1] for leader in producing._leaders.values()
            }
        assert read(cluster, Range(BRIEF, first, last + 1)) == values
    finally:
        producing.close()
        cluster.close()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_a_sentence_that_holds_no_secret(
    secured_kafka: SecuredKafka, secured_files: Files, mistake: str
) -> None:
    listener, settings, says = MISTAKES[mistake]
    address = secured_kafka.addresses[listener]
    security = Security.of(secured_files.settings(settings))
    with Brokers(ConnectionSettings(address, security)) as brokers, pytest.raises(ClientError) as raised:
        brokers.any(MetadataRequest(topics=[]))

    assert str(raised.value).startswith(says.format(at=address, **secured_files.words))
    for text in ("".join(traceback.format_exception(raised.value)), repr(security)):
        assert not [secret for secret in (PASSWORD, KEY_PASSWORD, WRONG, "PRIVATE KEY") if secret in text]


def test_who_is_refused_is_told_so_at_once(secured_kafka: SecuredKafka, secured_files: Files) -> None:
    settings = f"{USER} sasl.mechanism=PLAIN sasl.password={WRONG}"
    cluster = ClusterConnections(
        secured_kafka.addresses["USERS"], Security.of(secured_files.settings(settings))
    )
    with pytest.raises(Refused) as raised:
        cluster.topics()

    assert f"for {CONNECT_S:g} s" not in str(raised.value)  # which would tell of other attempts
    assert str(raised.value).startswith(f"{secured_kafka.addresses['USERS']} refuses ann=a,b: ")


def test_who_does_not_say_who_they_are_learns_what_may_be_missing(secured_kafka: SecuredKafka) -> None:
    cluster = ClusterConnections(secured_kafka.addresses["USERS"])
    with pytest.raises(ReadError, match=r"is security\.protocol=PLAINTEXT right\? \(for 5 s\)"):
        cluster.topics()
