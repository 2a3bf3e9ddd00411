"""What Kafka's own consumer-perf-test reaches: the Java client, as the only member of a new group."""

import subprocess
from collections.abc import Iterator
from itertools import count
from typing import Final

from compare.consumers import ConsumerLine
from compare.producers import Load
from compare.servers import Server
from compare.table import Expected, Figures, Line
from compat.kafka_tools.java import KafkaJava, find_kafka

TIMEOUT_S: Final = 120
PER_SECOND: Final = 9  # fetch.nMsg.sec, a column of the last line: without the time that joining takes
_names: Final = (f"java-{number}" for number in count())


class JavaConsumerLine(ConsumerLine):
    """A topic that is read once a round from its beginning, each time by another group."""

    def run(self, server: Server) -> Figures:
        cpu = server.cpu_seconds()
        per_second = perf_test(find_kafka(), server.bootstrap, self.topic, self.records)
        data = self.records * self.load.record_size
        return {
            "MB/s": per_second * self.load.record_size / 1e6,
            "records/s": per_second,
            "CPU s/GB": (server.cpu_seconds() - cpu) / data * 1e9,
        }


def perf_test(java: KafkaJava, bootstrap: str, topic: str, records: int) -> float:
    """Records a second, as consumer-perf-test sees them from its assignment on."""
    command = [str(java.java), "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command += ["-cp", f"{java.jars}/*", "org.apache.kafka.tools.ConsumerPerformance", "--hide-header"]
    command += ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records)]
    command += ["--group", next(_names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    columns = done.stdout.strip().rpartition("\n")[2].split(", ")
    if done.returncode or len(columns) <= PER_SECOND:
        raise RuntimeError(f"consumer-perf-test failed: {done.stdout[-500:]} {done.stderr[-500:]}")
    return float(columns[PER_SECOND])


def lines(*, quick: bool) -> Iterator[Line[Server]]:
    megabytes = 300 if quick else 600
    for record_size, partitions, batch_size in ((1024, 12, 131072), (100, 12, 16384)):
        load = Load(batch_size=batch_size, record_size=record_size, partitions=partitions, acks="1")
        records = megabytes * 1_000_000 // max(record_size, 400)
        line = JavaConsumerLine(load=load, records=records, topic=next(_names))
        yield Line(
            name=f"java consume {record_size} B, {partitions} part, batches of {batch_size // 1024} KiB",
            prepare=line.prepare,
            run=line.run,
            finish=line.finish,
            quick=record_size == 1024,
            rounds=2 if quick else 3,
            expected=[
                Expected(figure="MB/s", at_least=1.0, beside="records/s"),
                Expected(figure="CPU s/GB", at_most=1.2),
            ],
        )
