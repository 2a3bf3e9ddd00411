"""End-to-end latency: from a producer's send() until a consumer has the record, or a Delta table has it.

The value of a record begins with the time at which it was sent. Topic to topic uses the source and the sink
of each contender; topic to Delta uses its source with `headrace-delta`, since Delta's own sink needs a jar.
"""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from sparks.loads import PARTITIONS, Bench, Contender

_VALUE_BYTES: Final = 100
_DIGITS: Final = 13  # of a time in milliseconds
_PAUSE_S: Final = 0.01  # between two sends
_PATIENCE_S: Final = 120.0
_WARM_UP_BATCHES: Final = 6
_rounds = itertools.count()


class Percentiles(NamedTuple):
    """Milliseconds."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Route:
    """A query whose latency is measured; `run` returns that of every record sent in the measured time."""

    name: str
    run: Callable[[Bench, Contender, int, float], list[float]]

    def measure(self, bench: Bench, contender: Contender, rate: int, seconds: float) -> Percentiles:
        cuts = quantiles(self.run(bench, contender, rate, seconds), n=100)
        return Percentiles(cuts[49], cuts[98])


class _Window:
    """The time in which records are sent that count: it begins when a query has had time to warm up."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.first_ms = self.last_ms = 0

    def open(self) -> None:
        self.first_ms = time.time_ns() // 1_000_000
        self.last_ms = self.first_ms + int(self._seconds * 1000)

    def __contains__(self, sent_ms: int) -> bool:
        return self.first_ms <= sent_ms < self.last_ms


@contextmanager
def _fed(bench: Bench, topic: str, rate: int) -> Iterator[None]:
    """Send `rate` records a second to the topic for as long as the block runs."""
    over = threading.Event()
    producer = Producer({"bootstrap.servers": bench.bootstrap, "linger.ms": 0})

    def feed() -> None:
        began, sent = time.monotonic(), 0
        while not over.wait(_PAUSE_S):
            due = int((time.monotonic() - began) * rate)
            now = b"%d" % (time.time_ns() // 1_000_000)
            for _ in range(due - sent):
                producer.produce(topic, now.ljust(_VALUE_BYTES, b"."))
            sent = due
            producer.poll(0)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        over.set()
        feeder.join()
        producer.flush(30)


def _topic_to_topic(bench: Bench, contender: Contender, rate: int, seconds: float) -> list[float]:
    number = next(_rounds)
    source, target = f"from-{number}", f"to-{number}"
    for topic in (source, target):
        bench.create_topic(topic)
    window, found = _Window(seconds), list[float]()
    consumer = Consumer(
        {"bootstrap.servers": bench.bootstrap, "group.id": "latency", "fetch.wait.max.ms": 10}
    )
    consumer.assign([TopicPartition(target, partition, 0) for partition in range(PARTITIONS)])
    query = _start(
        bench,
        number,
        _table(bench, contender, source).select("value"),
        contender.format,
        bench.options({"topic": target}),
    )
    with _fed(bench, source, rate):
        _warm_up(query)
        window.open()
        _collect(consumer, window, found, query)
    query.stop()
    consumer.close()
    for topic in (source, target):
        bench.delete_topic(topic)
    return found


def _collect(consumer: Any, window: _Window, found: list[float], query: StreamingQuery) -> None:
    """Note the latency of every record of the window; records of a partition arrive in order."""
    done: set[int] = set()
    deadline = time.monotonic() + _PATIENCE_S + (window.last_ms - window.first_ms) / 1000
    while len(done) < PARTITIONS:
        _check(query, deadline)
        for message in consumer.consume(10_000, 0.05):
            sent_ms = int(message.value()[:_DIGITS])
            if sent_ms in window:
                found.append(time.time_ns() / 1e6 - sent_ms)
            elif sent_ms >= window.last_ms:
                done.add(message.partition())


def _topic_to_delta(bench: Bench, contender: Contender, rate: int, seconds: float) -> list[float]:
    number = next(_rounds)
    source, path = f"from-{number}", bench.directory / f"table-{number}"
    bench.create_topic(source)
    window = _Window(seconds)
    rows = _table(bench, contender, source).select(
        F.substring(F.col("value").cast("string"), 1, _DIGITS).cast("long").alias("sent_ms")
    )
    query = _start(bench, number, rows, "headrace-delta", {"path": str(path), "compactEvery": "0"})
    log = path / "_delta_log"
    with _fed(bench, source, rate):
        _warm_up(query)
        window.open()
        deadline = time.monotonic() + seconds + _PATIENCE_S
        while time.time_ns() // 1_000_000 < window.last_ms:
            _check(query, deadline)
            time.sleep(0.05)
        time.sleep(2 * _PAUSE_S)
        sent = len(list(log.glob("*.json")))
        while len(list(log.glob("*.json"))) < sent + 2:  # the second of them began after the window
            _check(query, deadline)
            time.sleep(0.05)
    query.stop()
    bench.delete_topic(source)
    return list(_committed(path, window))


def _committed(table: Path, window: _Window) -> Iterator[float]:
    """Yield for every row of the window the time from send() to the commit of its version."""
    for entry in sorted((table / "_delta_log").glob("*.json")):
        committed_ms = entry.stat().st_mtime_ns / 1e6
        for line in entry.read_text().splitlines():
            added = json.loads(line).get("add")
            if added is not None:
                times = pq.read_table(table / added["path"])["sent_ms"].to_pylist()
                yield from (committed_ms - each for each in times if each in window)


def _table(bench: Bench, contender: Contender, topic: str) -> DataFrame:
    options = bench.options({"subscribe": topic, "startingOffsets": "earliest"})
    return bench.spark.readStream.format(contender.format).options(**options).load()


def _start(bench: Bench, number: int, rows: DataFrame, sink: str, options: dict[str, str]) -> StreamingQuery:
    checkpoint = str(bench.directory / f"latency-{number}")
    return rows.writeStream.format(sink).options(**options).option("checkpointLocation", checkpoint).start()


def _warm_up(query: StreamingQuery) -> None:
    """Wait for the first batches: processes start, Java compiles, and the backlog of the start is read."""
    deadline = time.monotonic() + _PATIENCE_S
    while query.lastProgress is None or query.lastProgress["batchId"] < _WARM_UP_BATCHES:
        _check(query, deadline)
        time.sleep(0.05)


def _check(query: StreamingQuery, deadline: float) -> None:
    error = query.exception()
    if error is not None:
        raise error
    if time.monotonic() > deadline:
        raise TimeoutError(f"the query has not written its records: {query.lastProgress}")


ROUTES: Final = (Route("topic to topic", _topic_to_topic), Route("topic to Delta", _topic_to_delta))
RATES: Final = (1_000, 10_000)  # records a second
MEASURED_S: Final = 10.0
