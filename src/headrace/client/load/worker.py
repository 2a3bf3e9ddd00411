"""One client of a load, as a process of its own.

python -m headrace.client.load.worker

It reads its task from the standard input, because a command line is visible to all users, and reports its
progress as lines of JSON: {"records": …, "seconds": …}, and at the end {"done": true, …}.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.client.load.figures import Task, values
from headrace.system.background import BackgroundThread

REPORT_S: Final = 0.25
TIMEOUT_S: Final = 30.0
MOST_IN_FLIGHT: Final = 100_000  # records
POLL_S: Final = 0.1
LOOK_S: Final = 0.01
POOL: Final = 1_000  # different records
MOST_BYTES_IN_FLIGHT: Final = 64 * 1024 * 1024
AT_ONCE: Final = 5_000  # records that a consumer takes
_MOMENT: Final = Struct(">q")
_WARMING_UP: Final = _MOMENT.pack(0)


class Reporter:
    """Reports the progress of this process, a few times a second."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._reported = self._began

    def begin(self) -> None:
        """Measure from now on: the preparations are over."""
        self._began = self._reported = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def report(self, records: int) -> None:
        if time.perf_counter() - self._reported >= REPORT_S:
            self._reported = time.perf_counter()
            _print_json(records=records, seconds=self.seconds)

    def end(self, records: int, **more: object) -> None:
        _print_json(records=records, seconds=self.seconds, done=True, **more)


def _print_json(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def producer_of(task: Task, options: Mapping[str, Any]) -> Producer:
    """Return a producer with the settings of the task."""
    return Producer(
        {
            **task.security,
            "bootstrap.servers": task.bootstrap,
            "log_level": 0,
            "acks": task.acks,
            "compression.type": task.compression,
            "batch.size": 1_000_000,
            "message.max.bytes": 1_000_000_000,
            "queue.buffering.max.messages": 2 * MOST_IN_FLIGHT,
            "delivery.timeout.ms": int(TIMEOUT_S * 1000),
            **options,
        }
    )


def consumer_of(task: Task) -> Consumer:
    """Return a consumer without an assignment."""
    return Consumer(
        {
            **task.security,
            "bootstrap.servers": task.bootstrap,
            "log_level": 0,
            "group.id": "headrace-bench",  # librdkafka requires a group; nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "queued.min.messages": 1_000_000,
            "fetch.message.max.bytes": 1_000_000,
        }
    )


class _Receiver:
    """Reads every partition in a thread, and measures the latency of each record."""

    def __init__(self, task: Task, consumer: Consumer) -> None:
        self.took_ms: list[float] = []
        self.warm: set[int] = set()  # partitions with a record that arrived
        self._consumer = consumer
        self._ended = threading.Event()
        self._thread = BackgroundThread(self._receive, name="load-receiver", stop=self._ended.set)
        ends = []
        for index in task.partitions:
            place = TopicPartition(task.topic, index)
            _, place.offset = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
            ends.append(place)
        consumer.assign(ends)
        self._thread.start()

    def _receive(self) -> None:
        while not self._ended.is_set():
            message = self._consumer.poll(POLL_S)
            if message is None or message.error() is not None:
                continue
            now_ns = time.perf_counter_ns()
            (sent_ns,) = _MOMENT.unpack_from(message.value() or _WARMING_UP)
            if sent_ns:
                self.took_ms.append((now_ns - sent_ns) / 1e6)
            else:
                self.warm.add(message.partition() or 0)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()


def measure(task: Task, reporter: Reporter) -> None:
    """Report how long records took until they were acknowledged, and until they were received."""
    acknowledged_ms: list[float] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged_ms.append((message.latency() or 0.0) * 1000)

    producer = producer_of(task, {"linger.ms": 0})
    receiver = _Receiver(task, consumer_of(task))
    try:
        _warm_up(task, producer, receiver)
        padding = bytes(max(0, task.record_size - _MOMENT.size))
        reporter.begin()
        sent = 0
        while reporter.seconds < task.seconds:
            producer.poll(max(0.0, sent / task.rate - reporter.seconds))
            if reporter.seconds >= sent / task.rate:
                moment = _MOMENT.pack(time.perf_counter_ns())
                producer.produce(task.topic, moment + padding, on_delivery=delivered)
                sent += 1
            reporter.report(sent)
        producer.flush(TIMEOUT_S)
        _wait(lambda: len(receiver.took_ms) >= sent)
        reporter.end(sent, received_ms=receiver.took_ms, acknowledged_ms=acknowledged_ms)
    finally:
        receiver.end()


def _warm_up(task: Task, producer: Producer, receiver: _Receiver) -> None:
    """Open all connections, and wait until every partition is read: neither is measured."""
    for index in task.partitions:
        producer.produce(task.topic, _WARMING_UP, partition=index)
    producer.flush(TIMEOUT_S)
    _wait(lambda: len(receiver.warm) == len(task.partitions))


def _wait(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds, at most TIMEOUT_S: later records are missing in the figures."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(LOOK_S)


def produce(task: Task, reporter: Reporter) -> None:
    """Send records as fast as possible, and wait until all are acknowledged."""
    failures: list[KafkaError] = []
    producer = producer_of(task, {"linger.ms": 5, "delivery.report.only.error": True})
    most = max(1, min(MOST_IN_FLIGHT, MOST_BYTES_IN_FLIGHT // task.record_size))
    pool = [{"value": value} for value in values(task.record_size, min(POOL, most))]

    def failed(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer.list_topics(task.topic, timeout=TIMEOUT_S)
    reporter.begin()
    sent = 0
    while reporter.seconds < task.seconds and not failures:
        producer.poll(0)
        if len(producer) + len(pool) > most and len(producer):
            producer.poll(0.001)
        else:
            sent += producer.produce_batch(task.topic, pool, on_delivery=failed)
        reporter.report(sent - len(producer))
    left = producer.flush(TIMEOUT_S)
    if failures or left:
        raise SystemExit(_fail(failures[0].str() if failures else f"{left} records were not acknowledged"))
    reporter.end(sent)


def consume(task: Task, reporter: Reporter) -> None:
    """Read all records, or as many as the time of the task allows."""
    consumer = consumer_of(task)
    consumer.assign([TopicPartition(task.topic, index, 0) for index in task.partitions])
    left = set(task.partitions)
    records = 0
    reporter.begin()
    while left and reporter.seconds < task.seconds:
        for message in consumer.consume(AT_ONCE, timeout=0.2):
            error = message.error()
            if error is None:
                records += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  not private
                left.discard(message.partition())
            elif not error.retriable():
                raise SystemExit(_fail(error.str()))
        reporter.report(records)
    reporter.end(records)
    consumer.close()


def _fail(why: str) -> int:
    _print_json(error=why)
    return 1


def main() -> None:
    """Run the task of the standard input."""
    task = Task.decode(sys.stdin.read())
    {"produce": produce, "consume": consume, "latency": measure}[task.phase](task, Reporter())


if __name__ == "__main__":
    main()
