"""Topics as tables: rows per second, and rows per second of CPU time, beside a confluent-kafka loop.

    PYTHONPATH=tests python bench/tables.py                  # 2,000,000 rows of 100 bytes, in 4 partitions
    PYTHONPATH=tests python bench/tables.py --rows 5000000 --codec lz4
    PYTHONPATH=tests python bench/tables.py --spark          # and Spark's batch reader, with one core

The best of several rounds. CPU time is that of all threads of the reading process; the broker, which runs
beside it, is not in it. The loop makes an Arrow table of keys, values, partitions, offsets and timestamps.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import headrace.arrow
import headrace.duckdb
import headrace.polars
from headrace.tables.reader import walk
from support.process import UpProcess

TOPIC: Final = "rows"
SIZE: Final = 100  # bytes of a value
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Figure(NamedTuple):
    name: str
    rows: int
    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        wall, cpu = self.rows / self.wall_s / 1e6, self.rows / self.cpu_s / 1e6
        return f"{self.name:44} {wall:8.2f} {cpu:8.2f}"


def fill(bootstrap: str, rows: int, partitions: int, codec: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result()
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, **settings})
    for number in range(rows):
        value = (b"%d " % number).ljust(SIZE, b"x")
        while True:
            try:
                producer.produce(TOPIC, value, b"key-%d" % (number % 1000), partition=number % partitions)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    producer.flush()


def consumer_loop(bootstrap: str, partitions: int) -> int:
    """Read with the fastest method of a confluent-kafka consumer, and make an Arrow table of the messages."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": 200_000,
            "fetch.message.max.bytes": 4_000_000,
        }
    )
    consumer.assign([TopicPartition(TOPIC, number, OFFSET_BEGINNING) for number in range(partitions)])
    rows, ended = 0, 0
    while ended < partitions:
        messages = []
        for message in consumer.consume(10_000, 5.0):
            error = message.error()
            if error is None:
                messages.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001
                ended += 1
        table = pa.table(
            {
                "key": pa.array([each.key() for each in messages], pa.binary()),
                "value": pa.array([each.value() for each in messages], pa.binary()),
                "partition": pa.array([each.partition() for each in messages], pa.int32()),
                "offset": pa.array([each.offset() for each in messages], pa.int64()),
                "timestamp": pa.array([each.timestamp()[1] for each in messages], pa.int64()),
            }
        )
        rows += table.num_rows
    consumer.close()
    return rows


def readers(bootstrap: str, partitions: int) -> dict[str, Callable[[], int]]:
    def arrow(**options: Any) -> int:
        return sum(batch.num_rows for batch in headrace.arrow.read(TOPIC, bootstrap, **options))

    def duckdb() -> int:
        ((rows,),) = headrace.duckdb.relation(TOPIC, bootstrap).aggregate("count(value)").fetchall()
        return int(rows)

    return {
        "headrace.arrow, all columns, 1 reader": lambda: arrow(readers=1),
        "headrace.arrow, all columns, 4 readers": lambda: arrow(readers=4),
        "headrace.arrow, only values, 1 reader": lambda: arrow(readers=1, columns=["value"]),
        "headrace.polars, count of values": lambda: int(
            headrace.polars.scan(TOPIC, bootstrap).select("value").count().collect().item()
        ),
        "headrace.duckdb, count of values": duckdb,
        "confluent-kafka, consume(10000), to Arrow": lambda: consumer_loop(bootstrap, partitions),
    }


def measured(name: str, read: Callable[[], int], rows: int, rounds: int) -> Figure:
    found = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        count = read()
        assert count == rows, (name, count)
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return Figure(name, rows, min(wall for wall, _ in found), min(cpu for _, cpu in found))


def spark(bootstrap: str, rows: int, rounds: int) -> Figure:
    """Read all columns with format("headrace") into nothing; CPU time is that of Java and its workers."""
    from headrace.spark import launcher  # noqa: PLC0415

    session = launcher.session("bench", master="local[1]")
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC, "isolation.level": "read_committed"}
    frame = session.read.format("headrace").options(**options).load()
    found = []
    for _ in range(rounds + 1):  # the first one starts workers
        wall, cpu = time.perf_counter(), _cpu_of_children_s()
        frame.write.format("noop").mode("overwrite").save()
        found.append((time.perf_counter() - wall, _cpu_of_children_s() - cpu))
    session.stop()
    return Figure(
        'format("headrace") of Spark, all columns', rows, min(w for w, _ in found), min(c for _, c in found)
    )


def _cpu_of_children_s() -> float:
    """Return the CPU time of all descendants that are alive, and of those that they have waited for."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        stats[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    ours, found = {os.getpid()}, 0
    while added := {pid for pid, (parent, _) in stats.items() if parent in ours and pid not in ours}:
        ours |= added
        found += sum(stats[pid][1] for pid in added)
    return found / _TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows per second of topics as tables.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", default="none", choices=["none", "gzip", "snappy", "lz4", "zstd"])
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    walk.load()
    with tempfile.TemporaryDirectory() as root, UpProcess(Path(root), arguments=["--no-http"]) as up:
        fill(up.bootstrap, given.rows, given.partitions, given.codec)
        print(f"{given.rows:,} rows of {SIZE} bytes, {given.partitions} partitions, {given.codec}")
        print(f"{'millions of rows per second':44} {'of time':>8} {'of CPU':>8}")
        for name, read in readers(up.bootstrap, given.partitions).items():
            print(measured(name, read, given.rows, given.rounds), flush=True)
        if given.spark:
            print(spark(up.bootstrap, given.rows, given.rounds))


if __name__ == "__main__":
    main()
