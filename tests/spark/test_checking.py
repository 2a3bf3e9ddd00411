"""`check` on a real session: what is wrong with each step is found without running any."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import DoubleType, NestedField, StringType, TimeType
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline import Avro, Delta, Iceberg, Json, Parquet, Pipeline, Topic
from headrace.pipeline.checker import Checker, Finding
from headrace.pipeline.state import PipelineState
from wire.confluent import make_topic
from wire.process import BrokerProcess

ORDERS = Json("id string, price double")


def declared(topic: str = "shapes", **source: Any) -> Pipeline:
    pipeline = Pipeline("checked")
    pipeline.source("orders", topic=topic, **({"decode": ORDERS} | source))
    return pipeline


def findings(spark: SparkSession, bootstrap: str, root: Path, pipeline: Pipeline) -> dict[str, Finding]:
    checker = Checker(spark, pipeline, bootstrap, PipelineState(root / "state", pipeline.name))
    return {each.what: each for each in checker.findings()}


def same(orders: DataFrame) -> DataFrame:
    return orders.select("id", "price")


def of_sink(
    spark: SparkSession, broker: BrokerProcess, root: Path, target: Any, function: Any = same, **sink: Any
) -> Finding:
    pipeline = declared()

    def out(orders: DataFrame) -> DataFrame:
        found: DataFrame = function(orders)
        return found

    pipeline.sink(target, **sink)(out)
    return findings(spark, broker.bootstrap, root, pipeline)["sink out"]


def test_all_problems_are_found_at_once_and_what_hangs_on_one_is_left_out(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    pipeline = declared()
    pipeline.source("gone", topic="not-there")
    pipeline.source("odd", topic="shapes", decode=Avro("nowhere.avsc"))

    @pipeline.view
    def dear(orders: DataFrame) -> DataFrame:
        return orders.where("prize > 100")

    @pipeline.sink(Topic("checked-dear"))
    def of_view(dear: DataFrame) -> DataFrame:
        return dear

    @pipeline.sink(Topic("checked-gone"))
    def of_gone(gone: DataFrame) -> DataFrame:
        return gone

    @pipeline.sink(Topic("checked-out", key="id"))
    def fine(orders: DataFrame) -> DataFrame:
        return orders

    found = findings(spark, broker.bootstrap, tmp_path, pipeline)

    assert {what: each.good for what, each in found.items()} == {
        f"cluster {broker.bootstrap}": True,
        "source orders": True,
        "source gone": False,
        "source odd": False,
        "view dear": False,
        "sink fine": True,
    }
    assert found["source orders"].says == "5 partitions of shapes; id string, price double"
    assert found["source gone"].says.startswith("there is no topic 'not-there': create it")
    assert found["source odd"].says.startswith("nowhere.avsc cannot be read")
    assert found["view dear"].says.startswith("dear(): A column")
    assert "`prize`" in found["view dear"].says
    assert found["sink fine"].says == "topic checked-out will be created"
    assert not (tmp_path / "state").exists()


def test_brokers_that_do_not_answer_hide_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = declared()

    @pipeline.sink(Topic("out", key="key"))
    def out(orders: DataFrame) -> DataFrame:
        return orders

    found = findings(spark, "127.0.0.1:1", tmp_path, pipeline)
    assert not found["cluster 127.0.0.1:1"].good
    assert found["source orders"].good
    assert "`key`" in found["sink out"].says


def test_a_topic_takes_columns_of_records_and_is_not_what_is_read(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    make_topic(broker.bootstrap, "checked-topic")
    assert of_sink(spark, broker, tmp_path, Topic("checked-topic")).says == "topic checked-topic exists"
    loop = of_sink(spark, broker, tmp_path, Topic("shapes"))
    assert loop.says == "it reads topic shapes and writes to it: that would never end"
    raw = of_sink(
        spark,
        broker,
        tmp_path,
        Topic("checked-topic", raw=True),
        lambda orders: orders.select(F.col("price").alias("value")),
    )
    assert raw.says == "column 'value' is double, expected string or binary"


def test_a_query_that_spark_would_not_start_is_found(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    def counted(orders: DataFrame) -> DataFrame:
        return orders.groupBy("id").count()

    refused = of_sink(spark, broker, tmp_path, Topic("checked-counts"), counted)
    assert not refused.good
    assert "not supported for streaming aggregations without watermark" in refused.says
    assert of_sink(spark, broker, tmp_path, Topic("checked-counts"), counted, mode="update").good


def test_the_columns_of_a_table_have_to_fit(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    assert of_sink(spark, broker, tmp_path, Delta(path)).says == f"Delta table {path} will be created"
    assert not (tmp_path / "table").exists()
    DeltaTable.create(path, Schema([Field("id", PrimitiveType("long"))]))
    unfit = of_sink(spark, broker, tmp_path, Delta(path), lambda orders: orders.select("id"))
    assert unfit.says.startswith("column 'id' is bigint in the table, and string in the DataFrame")
    fits = of_sink(spark, broker, tmp_path, Delta(path), lambda orders: orders.selectExpr("1L as id"))
    assert fits.says == f"Delta table {path} exists, and the columns fit"
    by = of_sink(spark, broker, tmp_path, Delta(str(tmp_path / "other"), partition_by=["day"]))
    assert by.says.startswith("option 'partitionBy': there is no column 'day'")


def test_a_table_for_upserts_has_to_be_one_whose_rows_can_be_replaced(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    columns = [Field("id", PrimitiveType("string")), Field("price", PrimitiveType("double"))]
    path = str(tmp_path / "append-only")
    DeltaTable.create(path, Schema(columns), configuration={"delta.appendOnly": "true"})
    merged = Delta(path).upsert(keys="id", sequence_by="price")
    assert of_sink(spark, broker, tmp_path, Delta(path)).good
    said = of_sink(spark, broker, tmp_path, merged).says
    assert said == "upserts do not support tables with delta.appendOnly: unset it, or use another table"

    path = str(tmp_path / "without-key")
    DeltaTable.create(path, Schema(columns[1:]))
    merged = Delta(path, evolve=["add"]).upsert(keys="id", sequence_by="price")
    assert of_sink(spark, broker, tmp_path, merged).says.startswith("column 'id' is not in the table, whose")
    appended = of_sink(spark, broker, tmp_path, Delta(path, evolve=["add"]))
    assert appended.says == f"Delta table {path} exists, and will change: add id string"


def test_an_iceberg_table_for_upserts_has_to_be_one_that_spark_can_read(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    catalog = load_catalog("default", **settings)
    catalog.create_namespace("shop")
    columns = [("id", StringType()), ("price", DoubleType()), ("time", TimeType())]
    fields = [NestedField(n, *each, required=False) for n, each in enumerate(columns, 1)]
    catalog.create_table("shop.orders", IcebergSchema(*fields))
    target = Iceberg("shop.orders", settings)

    assert of_sink(spark, broker, tmp_path, target).good
    said = of_sink(spark, broker, tmp_path, target.upsert(keys="id", sequence_by="price")).says
    assert said.startswith("column 'time' is time, which tables do not have")
    catalog.close()


def test_a_directory_has_to_be_one_that_can_be_written_to(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    said = of_sink(spark, broker, tmp_path, Parquet(str(tmp_path / "file" / "below"))).says
    assert said == f"{tmp_path / 'file'} is not a directory"
    new = of_sink(spark, broker, tmp_path, Parquet(str(tmp_path / "new"))).says
    assert new == f"directory {tmp_path / 'new'} will be created"


@pytest.mark.parametrize("there", [True, False])
def test_a_catalog_has_to_be_reachable(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path, there: bool
) -> None:
    database = tmp_path / ("." if there else "nowhere") / "catalog.db"
    catalog = {"type": "sql", "uri": f"sqlite:///{database}", "warehouse": f"file://{tmp_path}"}
    found = of_sink(spark, broker, tmp_path, Iceberg("shop.orders", catalog))
    assert found.good == there
    reached = "Iceberg table shop.orders will be created"
    assert found.says.startswith(reached if there else "the catalog of shop.orders cannot be reached")
