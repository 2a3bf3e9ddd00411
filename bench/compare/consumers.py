"""What a consumer reaches (confluent-kafka), and how long a record takes from producer to consumer.

Partitions are assigned by hand. What joins a group is in `java_consumers`.
"""

import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from statistics import quantiles
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Producer, TopicPartition

from compare.producers import Load, send
from compare.servers import Server
from compare.table import Expected, Figures, Line
from compat.kafka_tools.server import client_settings

TIMEOUT_S: Final = 60
RATE: Final = 500  # records a second of a latency line: a tenth of a core or so
STAMP: Final = struct.Struct(">q92x")  # a 100 B record that says when it was sent
_names: Final = (f"consumed-{number}" for number in count())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLine:
    load: Load
    records: int
    topic: str

    def prepare(self, server: Server) -> None:
        server.create_topic(self.topic, partitions=self.load.partitions)
        send(server.bootstrap, self.topic, self.records, self.load)

    def finish(self, server: Server) -> None:
        server.delete_topic(self.topic)

    def run(self, server: Server) -> Figures:
        cpu = server.cpu_seconds()
        seconds = read(server.bootstrap, self.topic, self.load.partitions, self.records)
        data = self.records * self.load.record_size
        return {
            "MB/s": data / seconds / 1e6,
            "records/s": self.records / seconds,
            "CPU s/GB": (server.cpu_seconds() - cpu) / data * 1e9,
        }


def read(bootstrap: str, topic: str, partitions: int, records: int) -> float:
    """Seconds from the first record's arrival to the last's."""
    consumer = assigned(bootstrap, topic, partitions, OFFSET_BEGINNING)
    try:
        left = records - len(consumer.consume(1, TIMEOUT_S))
        start = time.perf_counter()
        while left > 0:
            messages = consumer.consume(min(left, 10_000), 1.0)
            left -= len(messages)
            if time.perf_counter() - start > TIMEOUT_S:
                raise TimeoutError(f"{left} of {records} records have not come after {TIMEOUT_S} s")
        return time.perf_counter() - start
    finally:
        consumer.close()


def assigned(bootstrap: str, topic: str, partitions: int, offset: int) -> Any:
    settings = {"group.id": "compare", "enable.auto.commit": False, "queued.min.messages": 1_000_000}
    consumer: Any = Consumer(client_settings(bootstrap) | settings)
    consumer.assign([TopicPartition(topic, number, offset) for number in range(partitions)])
    return consumer


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLine:
    """One record every two milliseconds, each with its time of sending, read as it arrives."""

    seconds: float
    acks: str
    topic: str

    def prepare(self, server: Server) -> None:
        server.create_topic(self.topic)

    def finish(self, server: Server) -> None:
        server.delete_topic(self.topic)

    def run(self, server: Server) -> Figures:
        wanted = int(self.seconds * RATE)
        arrivals: list[float] = []
        consumer = assigned(server.bootstrap, self.topic, 1, OFFSET_END)
        reader = threading.Thread(target=_collect, args=(consumer, wanted, arrivals), daemon=True)
        reader.start()
        time.sleep(1.0)  # the consumer waits at the log's end
        self._send_steadily(server.bootstrap, wanted)
        reader.join(TIMEOUT_S)
        consumer.close()
        settled = arrivals[len(arrivals) // 5 :]  # connections are made with the first
        if len(settled) < wanted // 2:
            raise TimeoutError(f"only {len(arrivals)} of {wanted} records arrived")
        percentiles = quantiles(settled, n=100)
        return {"p50 ms": percentiles[49], "p99 ms": percentiles[98]}

    def _send_steadily(self, bootstrap: str, wanted: int) -> None:
        producer: Any = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": self.acks})
        start = time.perf_counter()
        for number in range(wanted):
            time.sleep(max(0.0, start + number / RATE - time.perf_counter()))
            producer.produce(self.topic, STAMP.pack(time.perf_counter_ns()))
            producer.poll(0)
        producer.flush(TIMEOUT_S)


def _collect(consumer: Any, wanted: int, arrivals: list[float]) -> None:
    deadline = time.perf_counter() + TIMEOUT_S
    while len(arrivals) < wanted and time.perf_counter() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            (sent,) = STAMP.unpack(message.value())
            arrivals.append((time.perf_counter_ns() - sent) / 1e6)


def lines(*, quick: bool) -> Iterator[Line[Server]]:
    megabytes = 100 if quick else 300
    for record_size, partitions, batch_size in ((1024, 1, 16384), (1024, 12, 131072), (100, 12, 16384)):
        load = Load(batch_size=batch_size, record_size=record_size, partitions=partitions, acks="1")
        records = megabytes * 1_000_000 // max(record_size, 400)
        line = ConsumerLine(load=load, records=records, topic=next(_names))
        yield Line(
            name=f"consume {record_size} B, {partitions} part, batches of {batch_size // 1024} KiB",
            prepare=line.prepare,
            run=line.run,
            finish=line.finish,
            quick=record_size == 1024,
            expected=[
                Expected(figure="MB/s", at_least=1.0, beside="records/s"),
                Expected(figure="CPU s/GB", at_most=1.2),
            ],
        )
    for acks in ("1", "all"):
        latency = LatencyLine(seconds=2 if quick else 6, acks=acks, topic=next(_names))
        yield Line(
            name=f"end to end, {RATE} records/s, acks {acks}",
            prepare=latency.prepare,
            run=latency.run,
            finish=latency.finish,
            quick=acks == "1",
            rounds=2 if quick else 3,
            warm_up=not quick,
            expected=[Expected(figure="p50 ms"), Expected(figure="p99 ms", at_most=1.0)],
        )
