"""The files that `headrace pipeline init` makes; {name} is the pipeline's, {table} the same for SQL."""

from typing import Final

CONTINUOUS: Final = '''\
"""Pipeline {name}: orders from a topic, into a table and, if they are large, into another topic.

    headrace topic create {name}-orders --partitions 3
    headrace produce {name}-orders '{{"id": "1", "item": "tea", "price": 2.5, "at": "2026-01-01T08:00:00Z"}}'
    headrace produce {name}-orders '{{"id": "2", "item": "safe", "price": 250, "at": "2026-01-01T08:00:07Z"}}'
    headrace produce {name}-orders 'this is no order'

    headrace pipeline check {name}.py       # would it run?
    headrace pipeline explain {name}.py     # what would it do?
    headrace pipeline run {name}.py         # until Ctrl-C; --once: to the end of what is there

    headrace consume {name}-large-orders --exit-at-end
    headrace consume {name}-orders.dead-letters --exit-at-end --json      # rows that are no orders, and why
"""

from pyspark.sql import DataFrame

from headrace.pipeline import Delta, Json, Pipeline, Topic

pipeline = Pipeline("{name}")

# A source is a topic and a way to decode its values: Json, Csv, Text, Number, Avro or Raw (the default).
# Rows that cannot be decoded go to {name}-orders.dead-letters; bad_rows="drop" or "fail" are the other ways.
pipeline.source(
    "orders",
    topic="{name}-orders",
    decode=Json("id string, item string, price double, at timestamp"),
)


# A view is a step between. Arguments are named for sources and views, and everything is Spark's DataFrames:
# joins, windows with watermarks, stateful processing are as in Structured Streaming.
@pipeline.view
def large(orders: DataFrame) -> DataFrame:
    return orders.where("price > 100")


# What a sink's function returns goes to its target, as a query of its own. Rows become JSON objects.
@pipeline.sink(Topic("{name}-large-orders", key="id"), every="1 second")
def alerts(large: DataFrame) -> DataFrame:
    return large.select("id", "item", "price")


# Each row is in the table exactly once, whatever dies meanwhile. `_record` is where a row comes from.
# Paths count from where this file is.
@pipeline.sink(Delta("{name}-table"), every="10 seconds")
def archive(orders: DataFrame) -> DataFrame:
    return orders.select("*", "_record.partition", "_record.offset").drop("_record")
'''

SPECIFICATION: Final = """\
# A project of Spark Declarative Pipelines. Each run reads what is new and ends:
#   headrace pipeline run {name}
# Tables are in spark-warehouse, what Spark knows of them and how far it is in .headrace, all in here.
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""

TRANSFORMATIONS: Final = '''\
"""Orders from a topic into a table, what comes of them into another one, large ones into a topic.

    headrace topic create {name}-orders --partitions 3
    headrace topic create {name}-large-orders --partitions 3
    headrace produce {name}-orders '{{"id": "1", "item": "tea", "price": 2.5}}'
    headrace produce {name}-orders '{{"id": "2", "item": "safe", "price": 250}}'

    headrace pipeline run {name}       # again whenever there is something new
"""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

BROKERS = os.environ.get("HEADRACE_BOOTSTRAP", "127.0.0.1:9092")  # `headrace pipeline run` sets it
SCHEMA = "id string, item string, price double"

spark = SparkSession.active()


@dp.table
def {table}_orders() -> DataFrame:
    """Every order, each once."""
    records = (
        spark.readStream.format("headrace")
        .option("kafka.bootstrap.servers", BROKERS)
        .option("subscribe", "{name}-orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("order")).select("order.*")


@dp.materialized_view
def {table}_items() -> DataFrame:
    """How much was sold of each item; made anew with each run."""
    orders = spark.read.table("{table}_orders")
    return orders.groupBy("item").agg(F.count("*").alias("orders"), F.sum("price").alias("price"))


dp.create_sink(
    "{table}_large_orders",
    "headrace",
    {{"kafka.bootstrap.servers": BROKERS, "topic": "{name}-large-orders"}},
)


@dp.append_flow(target="{table}_large_orders")
def {table}_large() -> DataFrame:
    """Orders that somebody should know of."""
    orders = spark.readStream.table("{table}_orders").where("price > 100")
    return orders.select(F.col("id").alias("key"), F.to_json(F.struct("*")).alias("value"))
'''
