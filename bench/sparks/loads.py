"""The loads: reading in batch, reading as a stream, and writing, with each of the contenders."""

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

PARTITIONS: Final = 4
CODECS: Final = ("none", "lz4", "zstd")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Contender:
    """A format of Spark's, and the settings that somebody who knows it would choose."""

    name: str
    format: str
    reads: Mapping[str, str] = field(default_factory=dict, hash=False)
    writes: Mapping[str, str] = field(default_factory=dict, hash=False)


OURS: Final = Contender("ours", "headrace")
DEFAULTS: Final = Contender("its defaults", "kafka")
TUNED: Final = Contender(
    "tuned",
    "kafka",
    {
        "kafka.max.poll.records": "100000",
        "kafka.max.partition.fetch.bytes": str(16 << 20),
        "kafka.fetch.max.bytes": str(64 << 20),
    },
    {"kafka.batch.size": str(256 << 10), "kafka.linger.ms": "20"},
)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where loads run."""

    spark: SparkSession
    bootstrap: str
    records: int
    directory: Path

    def options(self, more: Mapping[str, str]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap, **more}

    def create_topic(self, name: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)

    def delete_topic(self, name: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.delete_topics([name])[name].result(30)


@dataclass(frozen=True, slots=True)
class Load:
    """Something to do with every contender; `run` returns the seconds it took."""

    name: str
    contenders: tuple[Contender, ...]
    run: Callable[[Bench, Contender], float]
    expected: Mapping[Contender, float]


def rows(bench: Bench) -> DataFrame:
    """Records of 100 bytes with keys of eight, which compress to about a half."""
    noise = F.substring(F.sha2(F.col("id").cast("string"), 256), 1, 50)
    value = F.concat(noise, F.lpad(F.col("id").cast("string"), 50, "0"))
    return bench.spark.range(0, bench.records, 1, PARTITIONS).select(
        F.lpad(F.col("id").cast("string"), 8, "0").alias("key"), value.alias("value")
    )


def fill(bench: Bench) -> None:
    """A topic for every codec, in batches of the size that most clients send."""
    for codec in CODECS:
        bench.create_topic(f"bench-{codec}")
        options = {"topic": f"bench-{codec}", "kafka.compression.type": codec, "kafka.batch.size": "65536"}
        writer = rows(bench).write.format("headrace").options(**bench.options(options))
        writer.mode("append").save()


def _read(codec: str) -> Callable[[Bench, Contender], float]:
    def run(bench: Bench, contender: Contender) -> float:
        options = bench.options({"subscribe": f"bench-{codec}", **contender.reads})
        frame = bench.spark.read.format(contender.format).options(**options).load()
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    return run


def _stream(codec: str) -> Callable[[Bench, Contender], float]:
    def run(bench: Bench, contender: Contender) -> float:
        options = bench.options(
            {"subscribe": f"bench-{codec}", "startingOffsets": "earliest", **contender.reads}
        )
        checkpoint = bench.directory / f"checkpoint-{next(_numbers)}"
        frame = bench.spark.readStream.format(contender.format).options(**options).load()
        began = time.perf_counter()
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return time.perf_counter() - began

    return run


def _write(bench: Bench, contender: Contender) -> float:
    topic = f"written-{next(_numbers)}"
    bench.create_topic(topic)
    options = bench.options({"topic": topic, **contender.writes})
    began = time.perf_counter()
    rows(bench).write.format(contender.format).options(**options).mode("append").save()
    took = time.perf_counter() - began
    bench.delete_topic(topic)
    return took


LOADS: Final = (
    *(
        Load(f"read {codec}", (OURS, DEFAULTS, TUNED), _read(codec), {DEFAULTS: 2.0, TUNED: 1.2})
        for codec in CODECS
    ),
    *(Load(f"stream {codec}", (OURS, DEFAULTS), _stream(codec), {DEFAULTS: 1.5}) for codec in CODECS),
    Load("write", (OURS, DEFAULTS, TUNED), _write, {DEFAULTS: 1.3}),
)
