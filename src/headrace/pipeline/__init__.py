"""Pipelines on Spark: from topics, through functions of DataFrames, into topics and tables.

    from headrace.pipeline import Delta, Json, Pipeline, Topic

    trucks = Pipeline("trucks")
    trucks.source("positions", topic="truck-positions", decode=Json("truck string, at timestamp, km double"))

    @trucks.sink(Delta("tables/positions"))
    def archive(positions):
        return positions

    @trucks.sink(Topic("truck-alerts", key="truck"))
    def alerts(positions):
        return positions.where("km > 1000")

The arguments of a function are the names of sources and views. Its result is written to its sink.
"""

from headrace.pipeline.debezium import Debezium
from headrace.pipeline.declaration import BadRows, Pipeline, Sink, Source, View
from headrace.pipeline.decoders import Avro, Csv, Json, Number, Raw, Text
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.maintenance import Maintenance
from headrace.pipeline.registry import Registry
from headrace.pipeline.restarts import Restart
from headrace.pipeline.targets import Console, Delta, Iceberg, Parquet, Topic

__all__ = [
    "Avro",
    "BadRows",
    "Console",
    "Csv",
    "Debezium",
    "Delta",
    "Iceberg",
    "Json",
    "Maintenance",
    "Number",
    "Parquet",
    "Pipeline",
    "PipelineError",
    "Raw",
    "Registry",
    "Restart",
    "Sink",
    "Source",
    "Text",
    "Topic",
    "View",
]
