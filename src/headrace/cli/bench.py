"""`headrace bench`: measure throughput and latency on this machine."""

import math
import multiprocessing
import queue
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, get_args

import click
from click.core import ParameterSource

from headrace.cli.bench_worker import Phase, Plan, Report, Task, run
from headrace.cli.support.output import Drawable, bar, count, size, table, together
from headrace.cli.support.session import Session, acks_option, options
from headrace.cli.support.temporary_cluster import temporary_cluster
from headrace.client.admin.admin import Admin
from headrace.client.cluster.cluster import Cluster
from headrace.client.errors import ClientError, NoSuchTopic
from headrace.client.wire.connection_settings import ConnectionSettings

PHASES: Final = get_args(Phase)
COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
MOST_REPLICAS: Final = 3
GRACE_S: Final = 60.0  # beyond the time of a phase, for connections and the last responses
LOOK_S: Final = 0.5  # how often it is checked that all processes run


@click.command()
@click.option(
    "--record-size", type=click.IntRange(16, 1_000_000), default=1000, help="The size of a record in bytes."
)
@click.option("--partitions", type=click.IntRange(1, 1000), default=6, help="The partitions of the topic.")
@click.option(
    "--replicas", type=click.IntRange(1), help="Default: 3, or the number of brokers if it is less."
)
@acks_option
@click.option(
    "--compression",
    "compressions",
    type=click.Choice(COMPRESSIONS),
    multiple=True,
    help="Repeatable, to compare. Default: none.",
)
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=5.0, help="The length of each phase.")
@click.option("--clients", type=click.IntRange(1, 64), default=1, help="The number of client processes.")
@click.option(
    "--rate", type=click.IntRange(1, 100_000), default=500, help="Records a second while latency is measured."
)
@click.option(
    "--only", "phases", type=click.Choice(PHASES), multiple=True, help="Run only this phase; repeatable."
)
@click.option("--brokers", type=click.IntRange(1, 9), default=1, help="The brokers of the temporary cluster.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The disk of the temporary cluster. Default: where temporary files are.",
)
@options
def bench(
    session: Session,
    /,
    *,
    compressions: Sequence[str],
    phases: Sequence[Phase],
    replicas: int | None,
    brokers: int,
    data: Path | None,
    **load: float | str,
) -> None:
    """Measure throughput and latency on this machine:  headrace bench

    Starts a cluster in a temporary directory, writes as fast as possible, reads the records back, and
    measures the latency of single records; then it deletes everything. With --bootstrap it uses a running
    cluster, and topics of its own that it deletes at the end.

    \b
      headrace bench --brokers 3 --record-size 100
      headrace bench --compression none --compression zstd --only produce
      headrace bench --bootstrap one.example.com:9092 --clients 4 --json
    """  # noqa: D301  \b keeps click from wrapping these lines
    signal.signal(signal.SIGTERM, _interrupt)
    with _cluster(session, brokers, data) as connection:
        with Cluster(connection) as cluster:
            existing = len(cluster.brokers())
        if replicas is not None and replicas > existing:
            raise ClientError(
                f"--replicas {replicas} on {count(existing, 'broker')}: there cannot be more than one on each"
            )
        plan = Plan(
            replicas=replicas or min(MOST_REPLICAS, existing),
            compressions=list(dict.fromkeys(compressions)) or ["none"],
            phases=list(phases) or PHASES,
            **load,  # type: ignore[arg-type]
        )
        outcome = Bench(connection, plan, existing).run()
    session.show(outcome, lambda: draw(outcome))


@contextmanager
def _cluster(session: Session, brokers: int, data: Path | None) -> Iterator[ConnectionSettings]:
    """Yield how to connect to the named cluster, or to a temporary one."""
    if session.named is not None and not session.uses_current_profile:  # a load must not hit a default
        _check_not_given("brokers", "data")
        yield session.connection
        return
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=data, ignore_cleanup_errors=True) as name,
        temporary_cluster(Path(name), brokers, "--no-http", new_session=True) as bootstrap,
    ):
        yield ConnectionSettings(bootstrap)


def _check_not_given(*names: str) -> None:
    """Raise UsageError if an option of the temporary cluster was given and there is none."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"--{name} is for a temporary cluster: --bootstrap, --profile or HEADRACE_BOOTSTRAP names a "
                "running one."
            )


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The figures of a phase."""

    phase: Phase
    compression: str
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


class Bench:
    """A bench on one cluster; it deletes its topics, also after an error."""

    def __init__(self, connection: ConnectionSettings, plan: Plan, brokers: int) -> None:
        self._connection, self._plan = connection, plan
        self._admin = Admin(connection)
        self.outcome = Outcome(brokers=brokers, plan=plan)

    def run(self) -> Outcome:
        for compression in self._plan.compressions:
            if {"produce", "consume"} & set(self._plan.phases):
                with self._topic() as topic:
                    self._load("produce", topic, compression)
                    if "consume" in self._plan.phases:
                        self._load("consume", topic, compression)
        if "latency" in self._plan.phases:
            with self._topic() as topic:
                (report,) = self._work("latency", topic, self._plan.compressions[0], 1)
            self.outcome.acknowledged = Latency.of(report.acknowledged_ms)
            self.outcome.received = Latency.of(report.received_ms)
        return self.outcome

    @contextmanager
    def _topic(self) -> Iterator[str]:
        name = f"headrace-bench-{uuid.uuid4().hex[:8]}"
        try:
            self._admin.create_topic(name, partitions=self._plan.partitions, replicas=self._plan.replicas)
            yield name
        finally:
            with suppress(NoSuchTopic):  # the creation failed
                self._admin.delete_topic(name)

    def _load(self, phase: Phase, topic: str, compression: str) -> None:
        clients = min(self._plan.clients, self._plan.partitions) if phase == "consume" else self._plan.clients
        reports = self._work(phase, topic, compression, clients)
        records, seconds = sum(each.records for each in reports), max(each.seconds for each in reports)
        rate = records / seconds if seconds else 0.0
        self.outcome.throughput.append(
            Throughput(
                phase=phase,
                compression=compression,
                records=records,
                seconds=seconds,
                records_per_s=rate,
                bytes_per_s=rate * self._plan.record_size,
            )
        )

    def _work(self, phase: Phase, topic: str, compression: str, clients: int) -> list[Report]:
        """Run a phase in client processes, show its progress, and return their last reports."""
        plan, spawn = self._plan, multiprocessing.get_context("spawn")
        reports: multiprocessing.queues.Queue[Report] = spawn.Queue()
        every = tuple(range(plan.partitions))
        workers = []
        for number in range(clients):
            task = Task(
                plan=plan,
                phase=phase,
                topic=topic,
                partitions=every[number::clients] if phase == "consume" else every,
                compression=compression,
                connection=self._connection.librdkafka(),
            )
            workers.append(spawn.Process(target=run, args=(task, number, reports), daemon=True))
        latest = [Report(worker=number) for number in range(clients)]
        what = phase if compression == "none" else f"{phase}, {compression}"
        deadline_s, before = time.monotonic() + GRACE_S + plan.seconds, 0.0
        try:
            for worker in workers:
                worker.start()
            with bar(what, plan.seconds) as advance:
                while not all(each.done for each in latest):
                    try:
                        report = reports.get(timeout=LOOK_S)
                    except queue.Empty:
                        if any(worker.exitcode for worker in workers):
                            raise ClientError("a client of the bench ended without a report") from None
                        if time.monotonic() > deadline_s:
                            raise ClientError("the bench does not end: see the brokers' logs") from None
                        continue
                    if report.error is not None:
                        raise ClientError(f"a client of the bench failed: {report.error}")
                    latest[report.worker] = report
                    seconds = max(each.seconds for each in latest)
                    rate = sum(each.records for each in latest) / seconds if seconds else 0.0
                    speed = f"{rate:,.0f} records/s, {size(rate * plan.record_size)}/s"
                    advance(seconds - before, f"{what}: {speed}")
                    before = seconds
        finally:
            for worker in workers:
                if worker.pid is not None:
                    worker.kill()
                    worker.join()
        return latest


def draw(outcome: Outcome) -> Drawable:
    """Return the setup and the figures."""
    plan = outcome.plan
    setup = (
        f"{count(outcome.brokers, 'broker')}, {count(plan.partitions, 'partition')}, "
        f"{count(plan.replicas, 'replica')} each, acks={plan.acks}, records of {plan.record_size:,} bytes, "
        f"{count(plan.clients, 'client')}"
    )
    parts: list[Drawable] = [setup]
    if outcome.throughput:
        rows: list[tuple[str, ...]] = [
            (
                each.phase if each.compression == "none" else f"{each.phase}, {each.compression}",
                f"{each.records_per_s:,.0f}",
                size(each.bytes_per_s),
                f"{each.records:,}",
                f"{each.seconds:.1f}",
            )
            for each in outcome.throughput
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
