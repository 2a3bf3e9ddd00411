"""Tables that several programs write to at the same time: every row once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from spark.feeds import Feed, drain
from spark.table_writers import BATCHES, beside, run_together


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Iterator[Feed]:
    yield Feed(tmp_path)
    for query in spark.streams.active:
        query.stop()


def ids_of(path: Path) -> list[int]:
    found: list[int] = sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())
    return found


def test_a_sink_that_compacts_a_delta_table_beside_a_program_that_compacts_it(tmp_path: Path) -> None:
    path = tmp_path / "table"
    with beside("delta_compactor", str(path)):
        run_together(("delta_sink", str(path), "0", "2"))

    assert ids_of(path) == list(range(BATCHES))


@pytest.mark.long
def test_a_query_that_compacts_a_delta_table_beside_a_program_that_compacts_it(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    for n in range(14):
        feed.add(range(n * 100, n * 100 + 100))
    path = tmp_path / "table"

    with beside("delta_compactor", str(path)):
        drain(feed.read(spark), feed, "headrace-delta", {"path": str(path), "compactEvery": 2})

    assert ids_of(path) == list(range(1400))


def test_three_queries_that_write_to_one_delta_table_and_compact_it(tmp_path: Path) -> None:
    path = tmp_path / "table"
    run_together(*(("delta_sink", str(path), str(query), "2") for query in range(3)))

    assert ids_of(path) == list(range(3 * BATCHES))
    assert "OPTIMIZE" in {each["operation"] for each in DeltaTable(path).history()}


@pytest.mark.long
def test_three_queries_that_write_to_one_iceberg_table_and_compact_it(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    options = {"table": "fleet.rows"} | {f"catalog.{name}": value for name, value in catalog.items()}
    opened = load_catalog("default", **catalog)
    opened.create_namespace("fleet")
    run_together(*(("iceberg_sink", json.dumps(options), str(query), "3") for query in range(3)))

    rows = opened.load_table("fleet.rows").scan().to_arrow()
    opened.close()
    assert sorted(rows["id"].to_pylist()) == list(range(3 * BATCHES))
