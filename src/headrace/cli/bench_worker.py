"""One client of `headrace bench`, as a process of its own: it produces, consumes, or measures latency."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from struct import Struct
from typing import Any, Final, Literal

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.system.background import BackgroundThread

REPORT_S: Final = 0.25
TIMEOUT_S: Final = 30.0
MOST_IN_FLIGHT: Final = 100_000  # records
MOST_BYTES_IN_FLIGHT: Final = 64 * 1024 * 1024
POOL: Final = 1_000  # different records
AT_ONCE: Final = 5_000  # records that a consumer takes
_MOMENT: Final = Struct(">q")
_WARMING_UP: Final = _MOMENT.pack(0)

Phase = Literal["produce", "consume", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure."""

    record_size: int
    partitions: int
    replicas: int
    acks: str
    compressions: Sequence[str]
    clients: int
    seconds: float
    rate: int  # records a second while latency is measured
    phases: Sequence[Phase]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The work of one process."""

    plan: Plan
    phase: Phase
    topic: str
    partitions: tuple[int, ...]
    compression: str
    connection: dict[str, Any] = field(repr=False)  # librdkafka's settings, with secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The progress of one process, and at its end the latencies that it measured."""

    worker: int
    records: int = 0
    seconds: float = 0.0
    done: bool = False
    error: str | None = None
    acknowledged_ms: Sequence[float] = ()
    received_ms: Sequence[float] = ()


class Reporter:
    """Reports the progress of this process, a few times a second."""

    def __init__(self, worker: int, reports: "Queue[Report]") -> None:
        self._worker, self._reports = worker, reports
        self.begin()

    def begin(self) -> None:
        """Measure from now on: the preparations are over."""
        self._began_s = self._reported_s = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began_s

    def report(self, records: int) -> None:
        if time.perf_counter() - self._reported_s >= REPORT_S:
            self._reported_s = time.perf_counter()
            self._reports.put(Report(worker=self._worker, records=records, seconds=self.seconds))

    def end(
        self, records: int, acknowledged_ms: Sequence[float] = (), received_ms: Sequence[float] = ()
    ) -> None:
        self._reports.put(
            Report(
                worker=self._worker,
                records=records,
                seconds=self.seconds,
                done=True,
                acknowledged_ms=acknowledged_ms,
                received_ms=received_ms,
            )
        )


def run(task: Task, worker: int, reports: "Queue[Report]") -> None:
    """Do the task; the last report is done, or has an error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    work = {"produce": produce, "consume": consume, "latency": measure}[task.phase]
    try:
        work(task, Reporter(worker, reports))
    except Exception as error:  # noqa: BLE001  the parent raises it
        reports.put(Report(worker=worker, error=str(error)))


def produce(task: Task, reporter: Reporter) -> None:
    """Send records as fast as possible, and wait until all are acknowledged."""
    failures: list[KafkaError] = []
    producer = _producer(task, {"linger.ms": 5, "delivery.report.only.error": True})
    most = max(1, min(MOST_IN_FLIGHT, MOST_BYTES_IN_FLIGHT // task.plan.record_size))
    pool = [{"value": value} for value in values(task.plan.record_size, min(POOL, most))]

    def failed(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer.list_topics(task.topic, timeout=TIMEOUT_S)
    reporter.begin()
    sent = 0
    while reporter.seconds < task.plan.seconds and not failures:
        producer.poll(0)
        if len(producer) + len(pool) > most and len(producer):
            producer.poll(0.001)
        else:
            sent += producer.produce_batch(task.topic, pool, on_delivery=failed)
        reporter.report(sent - len(producer))
    left = producer.flush(TIMEOUT_S)
    if failures or left:
        raise RuntimeError(failures[0].str() if failures else f"{left} records were not acknowledged")
    reporter.end(sent)


def consume(task: Task, reporter: Reporter) -> None:
    """Read all records, or as many as the time of the task allows."""
    consumer = _consumer(task)
    consumer.assign([TopicPartition(task.topic, index, 0) for index in task.partitions])
    left = set(task.partitions)
    records = 0
    reporter.begin()
    while left and reporter.seconds < task.plan.seconds:
        for message in consumer.consume(AT_ONCE, timeout=0.2):
            error = message.error()
            if error is None:
                records += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  not private
                left.discard(message.partition())
            elif not error.retriable():
                raise RuntimeError(error.str())
        reporter.report(records)
    reporter.end(records)
    consumer.close()


def measure(task: Task, reporter: Reporter) -> None:
    """Report how long records took until they were acknowledged, and until they were received."""
    acknowledged_ms: list[float] = []
    received_ms: list[float] = []
    warm: set[int] = set()  # partitions with a record that arrived
    ended = threading.Event()
    producer, consumer = _producer(task, {"linger.ms": 0}), _consumer(task)

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged_ms.append((message.latency() or 0.0) * 1000)

    def receive() -> None:
        while not ended.is_set():
            message = consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            now_ns = time.perf_counter_ns()
            (sent_ns,) = _MOMENT.unpack_from(message.value() or _WARMING_UP)
            if sent_ns:
                received_ms.append((now_ns - sent_ns) / 1e6)
            else:
                warm.add(message.partition() or 0)

    # The topic is new, so that every partition is read from its first record.
    consumer.assign([TopicPartition(task.topic, index, 0) for index in task.partitions])
    receiving = BackgroundThread(receive, name="bench-receiver", stop=ended.set)
    receiving.start()
    # Open all connections, and wait until every partition is read: neither is measured.
    for index in task.partitions:
        producer.produce(task.topic, _WARMING_UP, partition=index)
    producer.flush(TIMEOUT_S)
    _wait(lambda: len(warm) == len(task.partitions))
    padding = bytes(max(0, task.plan.record_size - _MOMENT.size))
    reporter.begin()
    sent = 0
    while reporter.seconds < task.plan.seconds:
        producer.poll(max(0.0, sent / task.plan.rate - reporter.seconds))
        if reporter.seconds >= sent / task.plan.rate:
            moment = _MOMENT.pack(time.perf_counter_ns())
            producer.produce(task.topic, moment + padding, on_delivery=delivered)
            sent += 1
        reporter.report(sent)
    producer.flush(TIMEOUT_S)
    _wait(lambda: len(received_ms) >= sent)
    ended.set()
    receiving.join()
    reporter.end(sent, acknowledged_ms=acknowledged_ms, received_ms=received_ms)
    consumer.close()


def _wait(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds, at most TIMEOUT_S: later records are missing in the figures."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.01)


def _producer(task: Task, options: dict[str, Any]) -> Producer:
    return Producer(
        {
            **task.connection,
            "log_level": 0,
            "acks": task.plan.acks,
            "compression.type": task.compression,
            "batch.size": 1_000_000,
            "message.max.bytes": 1_000_000_000,
            "queue.buffering.max.messages": 2 * MOST_IN_FLIGHT,
            "delivery.timeout.ms": int(TIMEOUT_S * 1000),
            **options,
        }
    )


def _consumer(task: Task) -> Consumer:
    return Consumer(
        {
            **task.connection,
            "log_level": 0,
            "group.id": "headrace-bench",  # librdkafka requires a group; nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "queued.min.messages": 1_000_000,
            "fetch.message.max.bytes": 1_000_000,
        }
    )


def values(size: int, number: int) -> Iterator[bytes]:
    """Yield different records of a size, about as compressible as usual ones: words and numbers."""
    source = random.Random(size)  # noqa: S311  the same records each time
    for index in range(number):
        text = f'{{"order": {index}, "customer": "{source.getrandbits(64):x}", "items": ['
        while len(text) < size:
            text += f'{{"sku": "{source.getrandbits(40):x}", "count": {source.randrange(10)}}}, '
        yield text[:size].encode()
