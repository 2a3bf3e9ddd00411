"""Topics as Polars LazyFrames and DuckDB relations: the same rows, and no more fetched than needed."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import headrace.arrow
import headrace.duckdb
import headrace.polars
from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS
from headrace import NoSuchTopic
from headrace.tables.arrow.scan import Scan
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.offsets import Range
from spark.topics import SIZES
from support.plain_rows import consumed, rows_of

FIRST = datetime.fromtimestamp(FIRST_TIMESTAMP_MS / 1000, UTC)
COL = pl.col


class Fetched(list[Any]):
    """What was fetched: columns and ranges of each read."""


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Fetched:
    found, read = Fetched(), Scan.read

    def spy(
        self: Scan, cluster: ClusterConnections, ranges: list[Range], columns: list[str], *rest: Any
    ) -> Any:
        found.append(
            (sorted(columns), {each.partition.partition: (each.first, each.last) for each in ranges})
        )
        return read(self, cluster, ranges, columns, *rest)

    monkeypatch.setattr(Scan, "read", spy)
    return found


@pytest.fixture
def connection() -> Iterator["duckdb.DuckDBPyConnection"]:
    with closing(duckdb.connect()) as made:
        yield made


def at(seconds: int) -> datetime:
    return FIRST + timedelta(seconds=seconds)


PREDICATES: list[Any] = [
    (COL("partition") == 3, {3: (0, 7)}),
    ((COL("offset") >= 1990) & (COL("value").is_not_null()), {0: (1990, 2000)}),
    (COL("offset").is_between(4, 6), {0: (4, 7), 1: (4, 7), 3: (4, 7)}),
    (COL("partition").is_in([1, 3]) & (COL("offset") < 5), {1: (0, 5), 3: (0, 5)}),
    ((COL("offset") < 2) | (COL("offset") == 9), {0: (0, 10), 1: (0, 10), 3: (0, 2)}),
    (COL("timestamp") > at(28), {0: (29, 2000), 1: (29, 30)}),
    (COL("key").cast(pl.String) == "k5", {0: (0, 2000), 1: (0, 30), 3: (0, 7)}),
    (~(COL("offset") > 3), {0: (0, 4), 1: (0, 4), 3: (0, 4)}),
    ((COL("offset") > 3) | COL("value").is_null(), {0: (0, 2000), 1: (0, 30), 3: (0, 7)}),
    (COL("topic") == "other", {}),
]


@pytest.mark.parametrize(("predicate", "ranges"), PREDICATES, ids=lambda each: str(each)[:60])
def test_polars_finds_the_rows_of_its_own_filter(
    bootstrap: str, fetched: Fetched, predicate: pl.Expr, ranges: dict[int, tuple[int, int]]
) -> None:
    whole = pl.DataFrame(headrace.arrow.read("skewed", bootstrap).read_all())
    fetched.clear()

    found = headrace.polars.scan("skewed", bootstrap).filter(predicate).collect()

    assert rows_of(found.to_arrow()) == rows_of(whole.filter(predicate).to_arrow())
    assert [each for _, each in fetched] == [ranges]


def test_polars_reads_only_the_columns_that_it_needs(bootstrap: str, fetched: Fetched) -> None:
    scan = headrace.polars.scan("skewed", bootstrap)

    counted = scan.group_by("partition").len().sort("partition").collect()
    assert counted.rows() == [(number, size) for number, size in enumerate(SIZES) if size]
    assert scan.select(pl.len()).collect().item() == sum(SIZES)
    assert scan.filter(COL("offset") == 5).select("value").collect().height == 3
    assert scan.select("value").head(3).collect().height == 3
    (first, _), _, (third, _), (fourth, _) = fetched
    assert (first, third, fourth) == (["partition"], ["offset", "value"], ["value"])


def test_all_rows_are_those_of_a_consumer(bootstrap: str, connection: "duckdb.DuckDBPyConnection") -> None:
    for topic in ("shapes", "compacted", "transactions", "empty"):
        rows = consumed(bootstrap, topic)
        assert rows_of(headrace.polars.scan(topic, bootstrap).collect().to_arrow()) == rows
        relation = headrace.duckdb.relation(topic, bootstrap, connection=connection)
        assert rows_of(relation.to_arrow_table()) == rows


CONDITIONS: list[Any] = [
    ("partition = 3", {3: (0, 7)}),
    ('"offset" >= 1990 and value is not null', {0: (1990, 2000)}),
    ('"offset" between 4 and 6', {0: (4, 7), 1: (4, 7), 3: (4, 7)}),
    ('partition in (1, 3) and 5 > "offset"', {1: (0, 5), 3: (0, 5)}),
    ('"offset" < 2 or "offset" = 9', {0: (0, 10), 1: (0, 10), 3: (0, 2)}),
    (f"timestamp > timestamptz '{at(28).isoformat()}'", {0: (29, 2000), 1: (29, 30)}),
    ("key = 'k5'::blob", {0: (0, 2000), 1: (0, 30), 3: (0, 7)}),
    ('"offset" % 7 = 3', {0: (0, 2000), 1: (0, 30), 3: (0, 7)}),
]


@pytest.mark.parametrize(("condition", "ranges"), CONDITIONS)
def test_duckdb_finds_the_rows_of_its_own_filter(
    bootstrap: str,
    fetched: Fetched,
    connection: "duckdb.DuckDBPyConnection",
    condition: str,
    ranges: dict[int, tuple[int, int]],
) -> None:
    whole = connection.from_arrow(headrace.arrow.read("skewed", bootstrap).read_all())
    fetched.clear()

    found = headrace.duckdb.relation("skewed", bootstrap, connection=connection).filter(condition)

    assert rows_of(found.to_arrow_table()) == rows_of(whole.filter(condition).to_arrow_table())
    assert [each for _, each in fetched] == [ranges]


def test_duckdb_reads_only_the_columns_that_it_needs(
    bootstrap: str, fetched: Fetched, connection: "duckdb.DuckDBPyConnection"
) -> None:
    relation = headrace.duckdb.relation("skewed", bootstrap, connection=connection)

    assert relation.aggregate("count(value)").fetchall() == [(sum(SIZES),)]
    assert relation.filter("partition = 1").project('"offset"').order('"offset"').fetchall()[-1] == (29,)
    assert [columns for columns, _ in fetched] == [["value"], ["offset", "partition"]]


def test_a_relation_is_read_anew_and_joined(bootstrap: str, connection: "duckdb.DuckDBPyConnection") -> None:
    one = headrace.duckdb.relation("skewed", bootstrap, connection=connection).set_alias("one")
    other = connection.from_arrow(pa.table({"number": [1, 3]})).set_alias("other")
    joined = one.join(other, "one.partition = other.number")

    assert [joined.aggregate("count(*)").fetchall() for _ in range(2)] == [[(37,)], [(37,)]]


def test_a_topic_that_does_not_exist_is_named(bootstrap: str) -> None:
    with pytest.raises((NoSuchTopic, pl.exceptions.ComputeError), match="there is no topic 'nowhere'"):
        headrace.polars.scan("nowhere", bootstrap).collect()
