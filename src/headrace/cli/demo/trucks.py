"""The trucks of the demo: a fleet that sends positions, and the pipeline that reads them."""

import json
import math
import random
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, Message, Producer

from headrace.pipeline import Delta, Json, Pipeline, Topic
from headrace.system.background import BackgroundThread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


POSITIONS: Final = "truck-positions"
SPEEDS: Final = "truck-speeds"
ALERTS: Final = "truck-alerts"
SCHEMA: Final = (
    "truck string, number bigint, at timestamp, latitude double, longitude double, kmh double, km double"
)
LIMIT_KMH: Final = 105
WINDOW_S: Final = 10


def pipeline(table: Path) -> Pipeline:
    trucks = Pipeline("trucks")
    trucks.source("positions", topic=POSITIONS, decode=Json(SCHEMA), bad_rows="drop")

    @trucks.sink(Delta(str(table), compact_every=20), every="3 seconds")
    def archive(positions: "DataFrame") -> "DataFrame":
        return positions.drop("_record")

    @trucks.sink(Topic(SPEEDS, key="truck"), every="3 seconds")
    def speeds(positions: "DataFrame") -> "DataFrame":
        """Return mean speed and distance of each truck, in windows of ten seconds of event time."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        window = F.window("at", f"{WINDOW_S} seconds")
        return (
            positions.withWatermark("at", "5 seconds")
            .groupBy(window, "truck")
            .agg(
                F.round(F.avg("kmh"), 1).alias("kmh"),
                F.round(F.sum("km"), 3).alias("km"),
                F.count("*").alias("positions"),
            )
        )

    @trucks.sink(Topic(ALERTS, key="truck"), every="3 seconds")
    def alerts(positions: "DataFrame") -> "DataFrame":
        return positions.where(f"kmh > {LIMIT_KMH}").select("truck", "number", "at", "kmh")

    return trucks


TRUCKS: Final = 60
_EVERY_S: Final = 0.05
_KM_PER_DEGREE: Final = 111.0
_chance = random.Random(7)  # noqa: S311  for trucks


@dataclass(slots=True)
class _Truck:
    name: str
    latitude: float
    longitude: float
    heading: float
    kmh: float
    number: int = 0

    def drive(self, hours: float) -> dict[str, Any]:
        self.kmh = min(max(self.kmh + _chance.gauss(0, 2), 20.0), 115.0)
        self.heading += _chance.gauss(0, 0.1)
        km = self.kmh * hours
        self.latitude += km * math.cos(self.heading) / _KM_PER_DEGREE
        self.longitude += km * math.sin(self.heading) / _KM_PER_DEGREE
        self.number += 1
        return {
            "truck": self.name,
            "number": self.number,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "latitude": round(self.latitude, 6),
            "longitude": round(self.longitude, 6),
            "kmh": round(self.kmh, 1),
            "km": round(km, 5),
        }


class Fleet:
    """Sends positions from a thread of its own, with one idempotent producer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self.longest_pause_s = 0.0
        self._heard_s = time.monotonic()
        self._topic = topic
        self._trucks = []
        for number in range(TRUCKS):
            where, heading = (_chance.uniform(52, 53), _chance.uniform(13, 14)), _chance.uniform(0, 6)
            self._trucks.append(_Truck(f"truck-{number:02}", *where, heading, 80))
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20, "log_level": 0}
        )
        self._stopping = threading.Event()
        self._thread = BackgroundThread(self._drive, name="fleet", stop=self._stopping.set)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop when every position that was sent has been acknowledged."""
        self.stop_sending()
        self._producer.flush(30)

    def stop_sending(self) -> None:
        """Stop at once, and do not wait for acknowledgements: Ctrl-C has stopped the brokers, too."""
        self._stopping.set()
        self._thread.join()

    def _drive(self) -> None:
        self._heard_s = time.monotonic()
        while not self._stopping.wait(_EVERY_S):
            for truck in self._trucks:
                position = truck.drive(_EVERY_S / 3600)
                self._producer.produce(
                    self._topic, key=truck.name, value=json.dumps(position), on_delivery=self._delivered
                )
                self.sent += 1
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        now = time.monotonic()
        self.longest_pause_s = max(self.longest_pause_s, now - self._heard_s)
        self._heard_s = now
        if error is None:
            self.acknowledged += 1
        else:
            self.failed += 1
