"""`headrace bench`: measure throughput and latency on this machine, with one client."""

import math
import random
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any, Final, Literal, get_args

import click
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.cli.support.output import Advance, Drawable, bar, count, size, table, together
from headrace.cli.support.session import Session, acks_option, compression_option, options
from headrace.cli.support.temporary_cluster import temporary_cluster
from headrace.client.admin.admin import Admin
from headrace.client.cluster.cluster import Cluster
from headrace.client.errors import ClientError, NoSuchTopic
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.system.background import BackgroundThread

MOST_REPLICAS: Final = 3
TIMEOUT_S: Final = 30.0
MOST_IN_FLIGHT: Final = 100_000  # records
MOST_BYTES_IN_FLIGHT: Final = 64 * 1024 * 1024
POOL: Final = 1_000  # different records
AT_ONCE: Final = 5_000  # records that the consumer takes
_SHOW_S: Final = 0.25  # how often the progress is shown
_MOMENT: Final = Struct(">q")
_WARMING_UP: Final = _MOMENT.pack(0)
_interrupted: Final = threading.Event()

Phase = Literal["produce", "consume", "latency"]


@click.command()
@click.option(
    "--record-size", type=click.IntRange(16, 1_000_000), default=1000, help="The size of a record in bytes."
)
@click.option("--partitions", type=click.IntRange(1, 1000), default=6, help="The partitions of the topic.")
@click.option(
    "--replicas", type=click.IntRange(1), help="Default: 3, or the number of brokers if it is less."
)
@acks_option
@compression_option
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=5.0, help="The length of each phase.")
@click.option(
    "--rate", type=click.IntRange(1, 100_000), default=500, help="Records a second while latency is measured."
)
@click.option(
    "--only", "phases", type=click.Choice(get_args(Phase)), multiple=True, help="Run only this; repeatable."
)
@click.option(
    "--brokers", type=click.IntRange(1, 9), help="The brokers of the temporary cluster. Default: one."
)
@options
def bench(
    session: Session,
    /,
    *,
    phases: Sequence[Phase],
    replicas: int | None,
    brokers: int | None,
    **load: float | str,
) -> None:
    """Measure throughput and latency on this machine:  headrace bench

    Starts a cluster in a temporary directory, writes as fast as possible, reads the records back, and
    measures the latency of single records; then it deletes everything. With --bootstrap it uses a running
    cluster, and topics of its own that it deletes at the end. TMPDIR is the disk of the temporary cluster.

    \b
      headrace bench --brokers 3 --record-size 100
      headrace bench --compression zstd --only produce
      headrace bench --bootstrap one.example.com:9092 --json
    """  # noqa: D301  \b keeps click from wrapping these lines
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _cluster(session, brokers) as connection:
        with Cluster(connection) as cluster:
            existing = len(cluster.brokers())
        if replicas is not None and replicas > existing:
            raise ClientError(
                f"--replicas {replicas} on {count(existing, 'broker')}: there cannot be more than one on each"
            )
        plan = Plan(
            replicas=replicas or min(MOST_REPLICAS, existing),
            phases=phases or get_args(Phase),
            **load,  # type: ignore[arg-type]
        )
        # In a thread: Ctrl-C in a callback of librdkafka would become another error.
        with ThreadPoolExecutor(1) as thread:
            try:
                outcome = thread.submit(run, connection, plan, existing).result()
            except KeyboardInterrupt:
                _interrupted.set()
                raise
    session.show(outcome, lambda: draw(outcome))


@contextmanager
def _cluster(session: Session, brokers: int | None) -> Iterator[ConnectionSettings]:
    """Yield how to connect to the named cluster, or to a temporary one."""
    if session.named is not None and not session.uses_current_profile:  # a load must not hit a default
        if brokers is not None:
            raise click.UsageError(
                "--brokers is for a temporary cluster: --bootstrap, --profile or HEADRACE_BOOTSTRAP names a "
                "running one."
            )
        yield session.connection
        return
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as name,
        temporary_cluster(Path(name), brokers or 1, "--no-http", new_session=True) as bootstrap,
    ):
        yield ConnectionSettings(bootstrap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure."""

    record_size: int
    partitions: int
    replicas: int
    acks: str
    compression: str
    seconds: float
    rate: int  # records a second while latency is measured
    phases: Sequence[Phase]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The figures of a phase."""

    phase: Phase
    records: int
    seconds: float
    records_per_s: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The latency of records in milliseconds, by percentile."""

    p50: float
    p95: float
    p99: float
    p999: float
    max: float

    @classmethod
    def of(cls, took_ms: Sequence[float]) -> "Latency | None":
        """Return the percentiles, each of which one record had; None without any records."""
        if not took_ms:
            return None
        ordered = sorted(took_ms)
        p50, p95, p99, p999 = (
            ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95, 0.99, 0.999)
        )
        return cls(p50=p50, p95=p95, p99=p99, p999=p999, max=ordered[-1])


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The measurements so far."""

    brokers: int
    plan: Plan
    throughput: list[Throughput] = field(default_factory=list)
    acknowledged: Latency | None = None
    received: Latency | None = None


def run(connection: ConnectionSettings, plan: Plan, brokers: int) -> Outcome:
    """Measure what the plan says; the topics are deleted, also after an error."""
    outcome, client = Outcome(brokers=brokers, plan=plan), _Client(connection.librdkafka(), plan)
    if {"produce", "consume"} & set(plan.phases):
        with _topic(connection, plan) as topic:
            outcome.throughput.append(client.produce(topic))
            if "consume" in plan.phases:
                outcome.throughput.append(client.consume(topic))
    if "latency" in plan.phases:
        with _topic(connection, plan) as topic:
            outcome.acknowledged, outcome.received = client.latency(topic)
    return outcome


@contextmanager
def _topic(connection: ConnectionSettings, plan: Plan) -> Iterator[str]:
    admin, name = Admin(connection), f"headrace-bench-{uuid.uuid4().hex[:8]}"
    try:
        admin.create_topic(name, partitions=plan.partitions, replicas=plan.replicas)
        yield name
    finally:
        with suppress(NoSuchTopic):  # the creation failed
            admin.delete_topic(name)


class _Clock:
    """The time of a phase since its preparations were over; shows its progress a few times a second."""

    def __init__(self, phase: Phase, plan: Plan, advance: Advance) -> None:
        self._phase, self._plan, self._advance = phase, plan, advance
        self._began_s = time.perf_counter()
        self._shown_s = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began_s

    def runs(self, records: int) -> bool:
        """Show how many records there were; return whether the phase has time left."""
        if _interrupted.is_set():
            raise KeyboardInterrupt
        seconds = self.seconds
        if seconds - self._shown_s >= _SHOW_S:
            rate = records / seconds
            speed = f"{rate:,.0f} records/s, {size(rate * self._plan.record_size)}/s"
            self._advance(seconds - self._shown_s, f"{self._phase}: {speed}")
            self._shown_s = seconds
        return seconds < self._plan.seconds

    def throughput(self, records: int) -> Throughput:
        seconds = self.seconds
        return Throughput(
            phase=self._phase,
            records=records,
            seconds=seconds,
            records_per_s=records / seconds,
            bytes_per_s=records * self._plan.record_size / seconds,
        )


class _Client:
    """Produces, consumes and measures latency; `connection` are librdkafka's settings."""

    def __init__(self, connection: dict[str, Any], plan: Plan) -> None:
        self._connection, self._plan = connection, plan

    def produce(self, topic: str) -> Throughput:
        """Send records as fast as possible, and wait until all are acknowledged."""
        plan, failures = self._plan, list[KafkaError]()
        producer = self._producer({"linger.ms": 5, "delivery.report.only.error": True})
        most = max(1, min(MOST_IN_FLIGHT, MOST_BYTES_IN_FLIGHT // plan.record_size))
        pool = [{"value": value} for value in values(plan.record_size, min(POOL, most))]

        def failed(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failures.append(error)

        producer.list_topics(topic, timeout=TIMEOUT_S)
        sent = 0
        with bar("produce", plan.seconds) as advance:
            clock = _Clock("produce", plan, advance)
            while clock.runs(sent - len(producer)) and not failures:
                producer.poll(0)
                if len(producer) + len(pool) > most and len(producer):
                    producer.poll(0.001)
                else:
                    sent += producer.produce_batch(topic, pool, on_delivery=failed)
            left = producer.flush(TIMEOUT_S)
        if failures or left:
            why = failures[0].str() if failures else f"{left} records were not acknowledged"
            raise ClientError(f"the bench cannot produce: {why}")
        return clock.throughput(sent)

    def consume(self, topic: str) -> Throughput:
        """Read all records, or as many as the time allows."""
        consumer, records, left = self._consumer(topic), 0, set(range(self._plan.partitions))
        with bar("consume", self._plan.seconds) as advance:
            clock = _Clock("consume", self._plan, advance)
            while clock.runs(records) and left:
                for message in consumer.consume(AT_ONCE, timeout=0.2):
                    error = message.error()
                    if error is None:
                        records += 1
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  not private
                        left.discard(message.partition())
                    elif not error.retriable():
                        raise ClientError(f"the bench cannot consume: {error.str()}")
        consumed = clock.throughput(records)
        consumer.close()
        return consumed

    def latency(self, topic: str) -> tuple[Latency | None, Latency | None]:
        """Return how long records took until they were acknowledged, and until they were received."""
        plan, acknowledged_ms, received_ms = self._plan, list[float](), list[float]()
        warm: set[int] = set()  # partitions with a record that arrived
        ended = threading.Event()
        # The topic is new, so that every partition is read from its first record.
        producer, consumer = self._producer({"linger.ms": 0}), self._consumer(topic)

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

        receiving = BackgroundThread(receive, name="bench-receiver", stop=ended.set)
        receiving.start()
        try:
            # Open all connections, and wait until every partition is read: neither is measured.
            for index in range(plan.partitions):
                producer.produce(topic, _WARMING_UP, partition=index)
            producer.flush(TIMEOUT_S)
            _wait(lambda: len(warm) == plan.partitions)
            padding, sent = bytes(max(0, plan.record_size - _MOMENT.size)), 0
            with bar("latency", plan.seconds) as advance:
                clock = _Clock("latency", plan, advance)
                while clock.runs(sent):
                    producer.poll(max(0.0, sent / plan.rate - clock.seconds))
                    if clock.seconds >= sent / plan.rate:
                        moment = _MOMENT.pack(time.perf_counter_ns())
                        producer.produce(topic, moment + padding, on_delivery=delivered)
                        sent += 1
                producer.flush(TIMEOUT_S)
            _wait(lambda: len(received_ms) >= sent)
        finally:
            ended.set()
            receiving.join()
        consumer.close()
        return Latency.of(acknowledged_ms), Latency.of(received_ms)

    def _producer(self, settings: dict[str, Any]) -> Producer:
        return Producer(
            {
                **self._connection,
                "log_level": 0,
                "acks": self._plan.acks,
                "compression.type": self._plan.compression,
                "batch.size": 1_000_000,
                "message.max.bytes": 1_000_000_000,
                "queue.buffering.max.messages": 2 * MOST_IN_FLIGHT,
                "delivery.timeout.ms": int(TIMEOUT_S * 1000),
                **settings,
            }
        )

    def _consumer(self, topic: str) -> Consumer:
        consumer = Consumer(
            {
                **self._connection,
                "log_level": 0,
                "group.id": "headrace-bench",  # librdkafka requires a group; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "queued.min.messages": 1_000_000,
                "fetch.message.max.bytes": 1_000_000,
            }
        )
        consumer.assign([TopicPartition(topic, index, 0) for index in range(self._plan.partitions)])
        return consumer


def _wait(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds, at most TIMEOUT_S: later records are missing in the figures."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline_s and not _interrupted.wait(0.01):
        pass


def values(size: int, number: int) -> Iterator[bytes]:
    """Yield different records of a size, about as compressible as usual ones: words and numbers."""
    source = random.Random(size)  # noqa: S311  the same records each time
    for index in range(number):
        text = f'{{"order": {index}, "customer": "{source.getrandbits(64):x}", "items": ['
        while len(text) < size:
            text += f'{{"sku": "{source.getrandbits(40):x}", "count": {source.randrange(10)}}}, '
        yield text[:size].encode()


def draw(outcome: Outcome) -> Drawable:
    """Return the setup and the figures."""
    plan = outcome.plan
    setup = (
        f"{count(outcome.brokers, 'broker')}, {count(plan.partitions, 'partition')}, "
        f"{count(plan.replicas, 'replica')} each, acks={plan.acks}, compression {plan.compression}, "
        f"records of {plan.record_size:,} bytes"
    )
    parts: list[Drawable] = [setup]
    if outcome.throughput:
        rows: list[Sequence[str]] = [
            (
                phase.phase,
                f"{phase.records_per_s:,.0f}",
                size(phase.bytes_per_s),
                f"{phase.records:,}",
                f"{phase.seconds:.1f}",
            )
            for phase in outcome.throughput
        ]
        parts.append(table(["", "records/s", "bytes/s", "records", "seconds"], rows))
    if outcome.received is not None and outcome.acknowledged is not None:
        rows = [
            (name, *(f"{ms:.2f} ms" for ms in (took.p50, took.p95, took.p99, took.p999, took.max)))
            for name, took in (("acknowledged", outcome.acknowledged), ("received", outcome.received))
        ]
        columns = [f"at {plan.rate:,} records/s", "p50", "p95", "p99", "p99.9", "max"]
        parts.append(table(columns, rows))
    return together(parts)
