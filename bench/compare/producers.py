"""What producers reach: Kafka's own producer-perf-test in Java, and confluent-kafka.

The client shares the machine with the broker, so these lines show what a user gets and not what the
broker could do; its CPU per GB still tells the brokers apart.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, product
from typing import Any, Final

from confluent_kafka import Producer

from compare.servers import Contender, Server
from compare.table import Expected, Figures, Line
from compat.kafka_tools.java import KafkaJava, find_kafka

TIMEOUT_S: Final = 120
GRID: Final = tuple(product((16384, 131072), (100, 1024), (1, 12), ("1", "all")))
QUICK: Final = {(16384, 1024, 12, "1"), (131072, 100, 1, "all")}
SUMMARY: Final = re.compile(r"\d+ steady state records sent, ([\d.]+) records/sec")
_names: Final = (f"produced-{number}" for number in count())


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    batch_size: int
    record_size: int
    partitions: int
    acks: str

    @property
    def settings(self) -> dict[str, str]:
        return {"acks": self.acks, "batch.size": str(self.batch_size)}

    def __str__(self) -> str:
        parts = f"{self.partitions} part"
        return f"{self.record_size} B, {parts}, acks {self.acks}, batch {self.batch_size // 1024} KiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerLine:
    """A load on a topic of its own, sent by one of the two clients."""

    load: Load
    records: int
    topic: str

    def prepare(self, server: Contender) -> None:
        server.create_topic(self.topic, partitions=self.load.partitions)

    def finish(self, server: Contender) -> None:
        server.delete_topic(self.topic)

    def java(self, server: Contender) -> Figures:
        cpu = server.cpu_seconds()
        per_second = perf_test(find_kafka(), server.bootstrap, self.topic, self.records, self.load)
        return self._figures(per_second, server.cpu_seconds() - cpu)

    def confluent(self, server: Contender) -> Figures:
        cpu = server.cpu_seconds()
        seconds = send(server.bootstrap, self.topic, self.records, self.load)
        return self._figures(self.records / seconds, server.cpu_seconds() - cpu)

    def _figures(self, per_second: float, cpu: float) -> Figures:
        return {
            "MB/s": per_second * self.load.record_size / 1e6,
            "records/s": per_second,
            "CPU s/GB": cpu / (self.records * self.load.record_size) * 1e9,
        }


def perf_test(java: KafkaJava, bootstrap: str, topic: str, records: int, load: Load) -> float:
    """Records a second, as producer-perf-test sees them once its first third has warmed it up."""
    properties = [f"{name}={value}" for name, value in load.settings.items()]
    command = [str(java.java), "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command += ["-cp", f"{java.jars}/*", "org.apache.kafka.tools.ProducerPerformance"]
    command += ["--topic", topic, "--num-records", str(records), "--record-size", str(load.record_size)]
    command += ["--throughput", "-1", "--warmup-records", str(records // 3), "--bootstrap-server", bootstrap]
    command += ["--command-property", *properties]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    found = SUMMARY.findall(done.stdout)
    if done.returncode or not found:
        raise RuntimeError(f"producer-perf-test failed: {done.stdout[-500:]} {done.stderr[-500:]}")
    return float(found[-1])


def send(bootstrap: str, topic: str, records: int, load: Load) -> float:
    """Seconds from the first record to the last acknowledgement with confluent-kafka."""
    failures: list[Any] = []
    producer: Any = Producer(
        {
            "bootstrap.servers": bootstrap,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1024 * 1024,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _message: failures.append(error),
            **load.settings,
        }
    )
    value = os.urandom(load.record_size)
    producer.list_topics(topic, timeout=30)  # connects
    start = time.perf_counter()
    for _ in range(records):
        producer.produce(topic, value)
    left = producer.flush(TIMEOUT_S)
    seconds = time.perf_counter() - start
    if left or failures:
        raise RuntimeError(f"{left} records were not sent, {len(failures)} failed: {failures[:1]}")
    return seconds


def lines(*, quick: bool) -> Iterator[Line[Server]]:
    share = 2 if quick else 1
    for batch_size, record_size, partitions, acks in GRID:
        load = Load(batch_size=batch_size, record_size=record_size, partitions=partitions, acks=acks)
        in_quick = (batch_size, record_size, partitions, acks) in QUICK
        megabytes = 150 if record_size == 100 else 400
        java = _line(load, megabytes * 1_000_000 // record_size // share)
        yield _compared(
            f"java {load}", java, java.java, quick=in_quick, warm_up=False, rounds=2 if quick else 3
        )
        confluent = _line(load, megabytes * 1_000_000 // record_size // share // 2)
        yield _compared(f"confluent {load}", confluent, confluent.confluent, quick=in_quick)


def _line(load: Load, records: int) -> ProducerLine:
    return ProducerLine(load=load, records=records, topic=next(_names))


def _compared(name: str, line: ProducerLine, run: Any, **options: Any) -> Line[Server]:
    speed = 1.3 if line.load.batch_size == 16384 else 1.0
    return Line(
        name=name,
        prepare=line.prepare,
        run=run,
        finish=line.finish,
        expected=[
            Expected(figure="MB/s", at_least=speed, beside="records/s"),
            Expected(figure="CPU s/GB", at_most=0.8),
        ],
        **options,
    )
