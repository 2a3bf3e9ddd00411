"""Topics of Apache Kafka as tables: the rows of a consumer, in Arrow, Polars, DuckDB and `headrace sql`."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as RdkafkaPartition

import headrace.arrow
import headrace.duckdb
import headrace.polars
from cli.command import Command
from cluster.waiting import until
from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS, rewrites, samples
from compat.secured_kafka import Files, SecuredKafka
from compat.secured_settings import MISTAKES, WAYS
from headrace import ConnectionSettings
from headrace.client.errors import ClientError
from headrace.tables.reader.errors import ReadError
from spark.topics import CODECS, plain, write
from support.plain_rows import Row, consumed, rows_of
from wire.confluent import settings

TOPICS: Final = ("shapes", "append-time", "compacted", "transactions", "open", "deleted", "nothing")
SECURED: Final = ("scram_over_tls", "plain_over_tls", "stores_in_pkcs12", "an_encrypted_key")
REWRITES: Final = 200
DELETED_BEFORE: Final = 45


@pytest.fixture(scope="module")
def kafka(secured_kafka: SecuredKafka) -> SecuredKafka:
    """Apache Kafka with topics of every kind, which the tests only read."""
    at = secured_kafka.bootstrap
    secured_kafka.create_topic("shapes", partitions=len(CODECS))
    for partition, codec in enumerate(CODECS):
        write(at, "shapes", samples(40), partition, compression_type=codec)
    secured_kafka.create_topic("append-time", {"message.timestamp.type": "LogAppendTime"})
    write(at, "append-time", samples(20), compression_type="lz4")
    secured_kafka.create_topic("nothing", partitions=3)
    secured_kafka.create_topic("deleted")
    write(at, "deleted", plain(100), batch_num_messages=30)
    for done in secured_kafka.admin.delete_records([RdkafkaPartition("deleted", 0, DELETED_BEFORE)]).values():
        done.result(timeout=30)
    _write_transactions(secured_kafka)
    _write_compacted(secured_kafka)
    return secured_kafka


def _write_transactions(kafka: SecuredKafka) -> None:
    """Write committed and aborted transactions, and one that nobody ends, with plain records between them."""
    for topic, rounds in (("transactions", 6), ("open", 2)):
        kafka.create_topic(topic, partitions=2)
        free = Producer(settings(kafka.bootstrap))
        writer = Producer(settings(kafka.bootstrap, transactional_id=topic, batch_num_messages=3))
        writer.init_transactions()
        for number in range(rounds):
            writer.begin_transaction()
            for record in range(7):
                writer.produce(topic, b"%d-%d" % (number, record), partition=record % 2)
            writer.flush()
            free.produce(topic, b"plain-%d" % number, partition=number % 2)
            free.flush()
            if number % 2:
                writer.abort_transaction()
            else:
                writer.commit_transaction()
        if topic == "open":
            writer.begin_transaction()
            writer.produce(topic, b"undecided", partition=0)
            writer.flush()
            free.produce(topic, b"behind", partition=0)
            free.flush()


def _write_compacted(kafka: SecuredKafka) -> None:
    small = {"cleanup.policy": "compact", "internal.segment.bytes": "2048", "min.cleanable.dirty.ratio": "0"}
    kafka.create_topic("compacted", small)
    write(kafka.bootstrap, "compacted", rewrites(REWRITES), batch_num_messages=3, compression_type="zstd")
    until("the topic is compacted", lambda: len(consumed(kafka.bootstrap, "compacted")) < REWRITES)


@pytest.fixture
def connection() -> Iterator["duckdb.DuckDBPyConnection"]:
    with closing(duckdb.connect()) as made:
        yield made


@pytest.mark.parametrize("topic", TOPICS)
def test_all_rows_are_those_of_a_consumer(
    kafka: SecuredKafka, connection: "duckdb.DuckDBPyConnection", topic: str
) -> None:
    at, rows = kafka.bootstrap, consumed(kafka.bootstrap, topic)

    assert rows_of(headrace.arrow.read(topic, at).read_all()) == rows
    assert rows_of(headrace.arrow.read(topic, at, readers=3, batch_rows=5).read_all()) == rows
    streamed = list(headrace.arrow.stream(topic, at, start="earliest", idle_s=0.1))
    assert (rows_of(pa.Table.from_batches(streamed)) if streamed else []) == rows
    assert rows_of(headrace.polars.scan(topic, at).collect().to_arrow()) == rows
    relation = headrace.duckdb.relation(topic, at, connection=connection)
    assert rows_of(relation.to_arrow_table()) == rows
    assert (rows == []) == (topic == "nothing")


def test_uncommitted_records_are_read_if_wanted(kafka: SecuredKafka) -> None:
    for topic in ("transactions", "open"):
        found = headrace.arrow.read(topic, kafka.bootstrap, isolation="read_uncommitted").read_all()
        assert rows_of(found) == consumed(kafka.bootstrap, topic, "read_uncommitted")
    values = set(found["value"].to_pylist())
    assert {b"undecided", b"behind", b"1-0"} <= values


@pytest.mark.parametrize(
    ("expression", "predicate"),
    [
        (pc.field("offset") >= 100, lambda row: row.offset >= 100),
        (pc.field("partition") == 2, lambda row: row.partition == 2),
        (
            pc.field("timestamp") >= datetime.fromtimestamp(FIRST_TIMESTAMP_MS / 1000 + 30, UTC),
            lambda row: row.timestamp.timestamp() >= FIRST_TIMESTAMP_MS / 1000 + 30,
        ),
        (
            pc.field("timestamp") < datetime.fromtimestamp(FIRST_TIMESTAMP_MS / 1000 + 9, UTC),
            lambda row: row.timestamp.timestamp() < FIRST_TIMESTAMP_MS / 1000 + 9,
        ),
    ],
    ids=["from an offset", "a partition", "from a time", "before a time"],
)
@pytest.mark.parametrize("topic", ["shapes", "compacted", "append-time"])
def test_a_filter_finds_the_rows_for_which_it_holds(
    kafka: SecuredKafka, topic: str, expression: pc.Expression, predicate: Any
) -> None:
    """Timestamps of `shapes` also step back, within batches and between them."""
    found = headrace.arrow.read(topic, kafka.bootstrap, filter=expression).read_all()

    assert rows_of(found) == [row for row in consumed(kafka.bootstrap, topic) if predicate(row)]


@pytest.mark.parametrize("way", SECURED)
def test_a_secured_cluster_is_read_with_a_dict_and_with_connection_settings(
    kafka: SecuredKafka, secured_files: Files, connection: "duckdb.DuckDBPyConnection", way: str
) -> None:
    given, rows = _settings(kafka, secured_files, way), consumed(kafka.bootstrap, "shapes")

    for bootstrap in (given, ConnectionSettings.of(given)):
        assert rows_of(headrace.arrow.read("shapes", bootstrap, readers=2).read_all()) == rows
    frame = headrace.polars.scan("shapes", given).filter(pl.col("partition") == 1).collect()
    assert frame.height == len([row for row in rows if row.partition == 1])
    relation = headrace.duckdb.relation("shapes", given, connection=connection)
    assert relation.aggregate("count(*)").fetchall() == [(len(rows),)]


@pytest.mark.parametrize("mistake", ["password_of_scram", "ca", "plaintext_to_tls", "no_certificate"])
def test_a_mistake_in_the_settings_is_the_reason(
    kafka: SecuredKafka, secured_files: Files, mistake: str
) -> None:
    listener, text, sentence = MISTAKES[mistake]
    at = kafka.addresses[listener]
    given = secured_files.settings(text) | {"bootstrap.servers": at}

    with pytest.raises((ReadError, ClientError)) as refusal:
        headrace.arrow.read("shapes", given)
    assert sentence.format(at=at, **secured_files.words) in str(refusal.value)


def _settings(kafka: SecuredKafka, files: Files, way: str) -> dict[str, str]:
    listener, text = WAYS[way]
    return files.settings(text) | {"bootstrap.servers": kafka.addresses[listener]}


# -- headrace sql ------------------------------------------------------------------------------


def _shown(row: Row) -> dict[str, Any]:
    return {
        "partition": row.partition,
        "offset": row.offset,
        "value": None if row.value is None else row.value.decode(),
        "headers": [
            {"key": name, "value": None if value is None else value.decode()} for name, value in row.headers
        ]
        or None,
    }


@pytest.mark.parametrize("way", ["scram_over_tls", "stores_in_pkcs12"])
def test_sql_reads_topics_by_a_profile(
    kafka: SecuredKafka, secured_files: Files, tmp_path: Path, way: str
) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path), "HEADRACE_BOOTSTRAP": ""}
    run = Command("")
    properties = [f"-X{name}={value}" for name, value in _settings(kafka, secured_files, way).items()]
    added = run("profile", "add", "kafka", *properties, environment=home)
    assert (added.status, added.err) == (0, "")

    query = 'select partition, "offset", value, headers from shapes order by 1, 2'
    found = run("sql", query, "--json", "--profile", "kafka", environment=home)
    assert (found.status, found.err) == (0, "")
    rows = [json.loads(line) for line in found.text.splitlines()]
    assert rows == [_shown(row) for row in consumed(kafka.bootstrap, "shapes")]


def test_sql_counts_the_rows_of_a_consumer(kafka: SecuredKafka) -> None:
    counts = ", ".join(f'(select count(*) from "{topic}") as "{topic}"' for topic in TOPICS)
    counted = Command(kafka.bootstrap).ok("sql", f"select {counts}", "--json").json
    assert counted == {topic: len(consumed(kafka.bootstrap, topic)) for topic in TOPICS}
