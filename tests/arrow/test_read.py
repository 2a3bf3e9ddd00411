"""`headrace.arrow.read` and `stream`, beside a loop over a confluent-kafka consumer."""

import random
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import TopicPartition as RdkafkaPartition
from confluent_kafka.admin import NewPartitions

import headrace.arrow
from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS
from headrace import BadSetting, ConnectionSettings, NoSuchTopic, TopicPartition, Unreachable
from headrace.tables.arrow.scan import Scan
from headrace.tables.reader.offsets import Range
from spark.topics import FOREVER, SIZES, plain, write
from support.plain_rows import consumed, rows_of
from wire.confluent import make_topic
from wire.requests import fresh_name

FIRST = datetime.fromtimestamp(FIRST_TIMESTAMP_MS / 1000, UTC)
TOPICS = ["shapes", "skewed", "append-time", "compacted", "transactions", "empty"]


def table(bootstrap: str, topic: str | list[str], **options: Any) -> pa.Table:
    return headrace.arrow.read(topic, bootstrap, **options).read_all()


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("readers", [1, 3])
def test_all_rows_are_those_of_a_consumer(bootstrap: str, topic: str, readers: int) -> None:
    assert rows_of(table(bootstrap, topic, readers=readers)) == consumed(bootstrap, topic)


def test_aborted_transactions_are_read_if_wanted(bootstrap: str) -> None:
    found = rows_of(table(bootstrap, "transactions", isolation="read_uncommitted"))

    assert found == consumed(bootstrap, "transactions", "read_uncommitted")
    assert len(found) == 2 * len(consumed(bootstrap, "transactions")) - 8


def test_several_topics_are_read_together(bootstrap: str) -> None:
    both = table(bootstrap, ["skewed", "shapes"])

    assert rows_of(both) == consumed(bootstrap, "shapes") + consumed(bootstrap, "skewed")


def test_rows_of_a_partition_are_in_order(bootstrap: str) -> None:
    last: dict[int, int] = {}
    for batch in headrace.arrow.read("skewed", bootstrap, columns=["partition", "offset"], batch_rows=64):
        for row in batch.to_pylist():
            assert row["offset"] > last.get(row["partition"], -1)
            last[row["partition"]] = row["offset"]
    assert last == {number: size - 1 for number, size in enumerate(SIZES) if size}


def test_batches_have_the_columns_and_at_most_the_rows_that_were_asked_for(bootstrap: str) -> None:
    reader = headrace.arrow.read("skewed", bootstrap, columns=["value", "offset"], batch_rows=17)
    batches = list(reader)

    assert reader.schema == pa.schema([("value", pa.binary()), ("offset", pa.int64())])
    assert max(batch.num_rows for batch in batches) == 17
    assert sum(batch.num_rows for batch in batches) == sum(SIZES)


@pytest.mark.parametrize("limit", [0, 1, 1999, 10_000])
def test_a_limit_ends_the_read(bootstrap: str, limit: int) -> None:
    assert table(bootstrap, "skewed", limit=limit).num_rows == min(limit, sum(SIZES))


def test_it_is_connected_as_other_clients_are(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = sum(SIZES)
    for given in ({"bootstrap.servers": bootstrap}, [bootstrap], ConnectionSettings(bootstrap)):
        assert headrace.arrow.read("skewed", given).read_all().num_rows == wanted
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", bootstrap)
    assert headrace.arrow.read("skewed").read_all().num_rows == wanted


# -- bounds ------------------------------------------------------------------------------------


def test_offsets_of_partitions_are_bounds(bootstrap: str) -> None:
    rows = consumed(bootstrap, "skewed")

    found = table(bootstrap, "skewed", start={0: 1500, 1: 4}, end={0: 1700, TopicPartition("skewed", 3): 3})

    def is_wanted(partition: int, offset: int) -> bool:
        return {0: 1500 <= offset < 1700, 1: offset >= 4, 3: offset < 3}.get(partition, True)

    assert rows_of(found) == [row for row in rows if is_wanted(row.partition, row.offset)]


def test_one_offset_is_a_bound_of_all_partitions(bootstrap: str) -> None:
    rows = consumed(bootstrap, "skewed")

    assert rows_of(table(bootstrap, "skewed", start=5, end=25)) == [
        row for row in rows if 5 <= row.offset < 25
    ]
    assert rows_of(table(bootstrap, "skewed", start=10**12)) == []
    assert rows_of(table(bootstrap, "skewed", end=10**12)) == rows


@pytest.mark.parametrize("seconds", [-10, 0, 3, 20, 1999, 5000])
@pytest.mark.parametrize("half", [timedelta(0), timedelta(microseconds=500)])
def test_times_are_bounds(bootstrap: str, seconds: int, half: timedelta) -> None:
    moment = FIRST + timedelta(seconds=seconds) + half
    rows = consumed(bootstrap, "skewed")

    later, earlier = (table(bootstrap, "skewed", **{bound: moment}) for bound in ("start", "end"))

    assert rows_of(later) == [row for row in rows if row.timestamp >= moment]
    assert rows_of(earlier) == [row for row in rows if row.timestamp < moment]


def test_latest_and_earliest_are_empty_reads_where_they_meet(bootstrap: str) -> None:
    assert table(bootstrap, "skewed", start="latest").num_rows == 0
    assert table(bootstrap, "skewed", end="earliest").num_rows == 0


def test_records_that_are_deleted_are_a_loss(bootstrap: str) -> None:
    topic = fresh_name("short")
    admin = make_topic(bootstrap, topic, retention_ms=FOREVER)
    write(bootstrap, topic, plain(10))
    admin.delete_records([RdkafkaPartition(topic, 0, 6)])[RdkafkaPartition(topic, 0)].result(timeout=20)

    with pytest.raises(
        headrace.arrow.DataLoss, match=f"offsets 0 to 10 are wanted, and {topic}-0 begins at 6"
    ):
        table(bootstrap, topic, start=0)
    for options in ({"start": 0, "data_loss": "skip"}, {}, {"filter": pc.field("offset") >= 0}):
        assert table(bootstrap, topic, **options)["offset"].to_pylist() == [6, 7, 8, 9]


# -- filters -----------------------------------------------------------------------------------


def expressions(count: int, seed: int) -> list[pc.Expression]:
    """Filters on places and times of `skewed` and `shapes`, some of which no row fulfils."""
    chance = random.Random(seed)

    def leaf() -> pc.Expression:
        compare = chance.choice(["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"])
        match chance.choice(["partition", "offset", "timestamp", "topic", "in", "value"]):
            case "partition":
                return getattr(pc.field("partition"), compare)(pa.scalar(chance.randrange(6), pa.int32()))
            case "offset":
                return getattr(pc.field("offset"), compare)(chance.choice([0, 3, 29, 100, 1999, 2500]))
            case "timestamp":
                at = FIRST + timedelta(seconds=chance.choice([-5, 0, 7, 33, 1000, 3000]))
                return getattr(pc.field("timestamp"), compare)(pa.scalar(at, pa.timestamp("us", tz="UTC")))
            case "topic":
                return pc.field("topic") == chance.choice(["skewed", "shapes"])
            case "in":
                return pc.field("offset").isin([chance.randrange(40), chance.randrange(2000)])
        return pc.field("value").is_valid()

    def some(depth: int) -> pc.Expression:
        if depth == 0 or chance.random() < 0.3:
            return leaf()
        found = reduce(chance.choice([and_, or_]), [some(depth - 1) for _ in range(chance.choice([2, 3]))])
        return ~found if chance.random() < 0.2 else found

    return [some(2) for _ in range(count)]


@pytest.mark.parametrize("topic", ["skewed", "shapes"])
def test_a_filter_leaves_the_rows_that_it_leaves_of_a_table(bootstrap: str, topic: str) -> None:
    whole = table(bootstrap, topic)
    for each in expressions(40, seed=len(topic)):
        assert rows_of(table(bootstrap, topic, filter=each)) == rows_of(whole.filter(each)), str(each)


@pytest.mark.parametrize(
    ("filter_", "ranges"),
    [
        (pc.field("partition") == 3, {3: (0, 7)}),
        (pc.field("offset") >= 1990, {0: (1990, 2000)}),
        ((pc.field("offset") > 3) & (pc.field("offset") < 6), {0: (4, 6), 1: (4, 6), 3: (4, 6)}),
        (pc.field("timestamp") >= pa.scalar(FIRST + timedelta(seconds=29)), {0: (29, 2000), 1: (29, 30)}),
        (pc.field("topic") == "other", {}),
    ],
)
def test_a_filter_shortens_what_is_fetched(
    bootstrap: str, filter_: pc.Expression, ranges: dict[int, tuple[int, int]]
) -> None:
    scan = Scan(ConnectionSettings(bootstrap), ("skewed",))
    cluster = scan.open()
    found = scan.ranges(cluster, filter_)
    cluster.close()

    assert found == [Range(TopicPartition("skewed", number), *each) for number, each in ranges.items()]


# -- streams -----------------------------------------------------------------------------------


def test_a_stream_brings_what_is_there_and_what_arrives(bootstrap: str) -> None:
    topic = fresh_name("stream")
    admin = make_topic(bootstrap, topic, partitions=1, retention_ms=FOREVER)
    write(bootstrap, topic, plain(5))
    batches = headrace.arrow.stream(topic, bootstrap, start="earliest", columns=["partition", "offset"])

    assert next(batches).to_pydict() == {"partition": [0] * 5, "offset": [0, 1, 2, 3, 4]}
    write(bootstrap, topic, plain(2))
    assert next(batches)["offset"].to_pylist() == [5, 6]
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(timeout=20)
    write(bootstrap, topic, plain(3), 1)
    assert next(batches).to_pydict() == {"partition": [1] * 3, "offset": [0, 1, 2]}
    batches.close()  # type: ignore[attr-defined]


def test_a_stream_ends_when_nothing_arrives(bootstrap: str) -> None:
    found = list(headrace.arrow.stream("skewed", bootstrap, start={0: 1995}, idle_s=0.1))

    assert rows_of(pa.Table.from_batches(found)) == [
        row for row in consumed(bootstrap, "skewed") if row.partition or row.offset >= 1995
    ]


# -- mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"start": "begin"}, 'start is "earliest", "latest", a datetime or offsets, not \'begin\''),
        ({"start": -1}, "start has -1, which is not an offset"),
        ({"end": {0: "5"}}, "end has '5', which is not an offset"),
        ({"end": {TopicPartition("other", 0): 5}}, "end names other-0, which is not to be read"),
        ({"start": {9: 5}}, "start names skewed-9, which does not exist"),
        ({"start": datetime(2026, 1, 1)}, "start is a time without a time zone"),  # noqa: DTZ001
        ({"columns": ["values"]}, "there is no column 'values', only key, value"),
        ({"isolation": "committed"}, "isolation is one of read_committed, read_uncommitted"),
        ({"batch_rows": 0}, "batch_rows is a number from 1 to"),
        ({"schema": "avro"}, 'schema is "registry", the URL of a registry'),
    ],
)
def test_wrong_arguments_are_named(bootstrap: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSetting) as refusal:
        headrace.arrow.read("skewed", bootstrap, **options)
    assert str(refusal.value).startswith(sentence)


def test_a_topic_that_does_not_exist_is_named(bootstrap: str) -> None:
    with pytest.raises(NoSuchTopic, match="there is no topic 'nowhere': create it"):
        headrace.arrow.read("nowhere", bootstrap)
    with pytest.raises(NoSuchTopic, match="there is no topic 'nowhere': create it"):
        headrace.arrow.stream(["skewed", "nowhere"], bootstrap)


def test_a_cluster_that_does_not_answer_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=r"no broker answers at 127\.0\.0\.1:1"):
        headrace.arrow.read("skewed", "127.0.0.1:1")
