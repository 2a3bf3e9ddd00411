"""The demo's pipeline: positions into a table, each once; speed, distance and alerts into topics."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace.pipeline import Delta, Json, Pipeline, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POSITIONS: Final = "truck-positions"
SPEEDS: Final = "truck-speeds"
ALERTS: Final = "truck-alerts"
SCHEMA: Final = (
    "truck string, number bigint, at timestamp, latitude double, longitude double, kmh double, km double"
)
LIMIT_KMH: Final = 105


def pipeline(table: Path) -> Pipeline:
    trucks = Pipeline("trucks")
    trucks.source("positions", topic=POSITIONS, decode=Json(SCHEMA), bad_rows="drop")

    @trucks.sink(Delta(str(table), compact_every=20), every="3 seconds")
    def archive(positions: "DataFrame") -> "DataFrame":
        return positions.drop("_record")

    @trucks.sink(Topic(SPEEDS, key="truck"), every="3 seconds")
    def speeds(positions: "DataFrame") -> "DataFrame":
        """Mean speed and distance of each truck, every ten seconds of the fleet's own time."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        windows = positions.withWatermark("at", "5 seconds").groupBy(F.window("at", "10 seconds"), "truck")
        return windows.agg(F.round(F.avg("kmh"), 1).alias("kmh"), F.round(F.sum("km"), 3).alias("km"))

    @trucks.sink(Topic(ALERTS, key="truck"), every="3 seconds")
    def alerts(positions: "DataFrame") -> "DataFrame":
        return positions.where(f"kmh > {LIMIT_KMH}").select("truck", "at", "kmh")

    return trucks
