"""Tables that several programs write to at the same time: every row once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from spark.feeds import Feed, drain
from spark.table_writers import BATCHES, beside, run_together

pytestmark = pytest.mark.extended


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


@pytest.mark.long
def test_a_delta_table_that_others_optimize_and_vacuum_has_every_row_once(tmp_path: Path) -> None:
    path = tmp_path / "table"
    DeltaTable.create(path, Schema([Field("id", PrimitiveType("long"))]))
    sinks = [("delta_sink", str(path), str(query), "2") for query in range(2)]
    with beside("delta_maintainer", str(path)):
        run_together(*sinks)
        run_together(*sinks)  # every batch again, as after a crash

    table = DeltaTable(path)
    assert ids_of(path) == list(range(2 * BATCHES))
    assert {"OPTIMIZE", "VACUUM END"} <= {each["operation"] for each in table.history()}
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    table.create_checkpoint()
    table.cleanup_metadata()
    assert not (path / "_delta_log" / f"{0:020}.json").exists(), "the log has not been cleaned up"
    run_together(*sinks)
    assert ids_of(path) == list(range(2 * BATCHES))


@pytest.mark.long
def test_an_iceberg_table_whose_snapshots_others_expire_has_every_row_once(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    options = {"table": "fleet.rows"} | {f"catalog.{name}": value for name, value in catalog.items()}
    opened = load_catalog("default", **catalog)
    opened.create_namespace("fleet")
    opened.create_table("fleet.rows", pa.schema([("id", pa.int64())]))
    sinks = [("iceberg_sink", json.dumps(options), str(query), "3") for query in range(2)]
    with beside("iceberg_maintainer", json.dumps(options)):
        run_together(*sinks)
        run_together(*sinks)  # every batch again, as after a crash

    table = opened.load_table("fleet.rows")
    rows = table.scan().to_arrow()
    opened.close()
    assert sorted(rows["id"].to_pylist()) == list(range(2 * BATCHES))
    assert len(table.snapshots()) < 2 * BATCHES
