"""`headrace bench`: measure throughput and latency on this machine."""

import os
import signal
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, get_args

import click
from click.core import ParameterSource

from headrace.cli.bench_cpu import OTHERS, Meter, are_here, limited_by
from headrace.cli.support.output import Drawable, bar, count, size, table, together
from headrace.cli.support.session import Session, acks_option, options
from headrace.cli.support.temporary_cluster import temporary_cluster
from headrace.client.admin.admin import Admin
from headrace.client.cluster.cluster import Cluster
from headrace.client.errors import ClientError, NoSuchTopic
from headrace.client.load.figures import COMPRESSIONS, Latency, Phase, Task, Throughput, latency, throughput
from headrace.client.load.run import Workers
from headrace.client.wire.connection_settings import ConnectionSettings

PHASES: Final = get_args(Phase)
MOST_REPLICAS: Final = 3


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

    The busiest thread of clients and brokers shows which of them is the limit.
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
        found = Bench(connection, plan).run()
    session.show(found, lambda: draw(found))


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


PREFIX: Final = "headrace-bench"


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
    rate: int
    phases: Sequence[Phase]


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

    def __init__(self, connection: ConnectionSettings, plan: Plan) -> None:
        self._connection = connection
        self._plan = plan
        self._admin = Admin(connection)
        with Cluster(connection) as cluster:
            brokers = cluster.status().brokers
        pids = [each.pid for each in brokers]
        self._pids = [pid for pid in pids if pid is not None] if are_here(pids) else None
        self.outcome = Outcome(brokers=len(brokers), plan=plan)

    def run(self) -> Outcome:
        for compression in self._plan.compressions:
            if {"produce", "consume"} & set(self._plan.phases):
                with self._topic() as topic:
                    self._load("produce", topic, compression)
                    if "consume" in self._plan.phases:
                        self._load("consume", topic, compression)
        if "latency" in self._plan.phases:
            with self._topic() as topic:
                self._measure(topic)
        return self.outcome

    @contextmanager
    def _topic(self) -> Iterator[str]:
        name = f"{PREFIX}-{uuid.uuid4().hex[:8]}"
        try:
            self._admin.create_topic(name, partitions=self._plan.partitions, replicas=self._plan.replicas)
            yield name
        finally:
            with suppress(NoSuchTopic):  # the creation failed
                self._admin.delete_topic(name)

    def _load(self, phase: Phase, topic: str, compression: str) -> None:
        number = self._plan.clients
        if phase == "consume":
            number = min(number, self._plan.partitions)
        tasks = [self._task(phase, topic, compression, each) for each in range(number)]
        with Workers(tasks) as workers:
            pids = [worker.pid for worker in workers.all]
            meter = Meter([*pids, *(self._pids or ())])
            for records in self._progress(workers, tasks[0]):
                if records and not workers.done:
                    meter.sample()
            records, seconds = workers.total()
        found = throughput(
            tasks[0],
            records,
            seconds,
            clients=meter.used(pids),
            brokers=None if self._pids is None else meter.used(self._pids),
            machine=meter.machine,
        )
        self.outcome.throughput.append(limited_by(found, os.cpu_count() or 1))

    def _measure(self, topic: str) -> None:
        task = self._task("latency", topic, self._plan.compressions[0], 0)
        with Workers([task]) as workers:
            for _ in self._progress(workers, task):
                pass
            measured = workers.all[0].latest
        self.outcome.acknowledged = latency(measured["acknowledged_ms"])
        self.outcome.received = latency(measured["received_ms"])

    def _task(self, phase: Phase, topic: str, compression: str, number: int) -> Task:
        """Return the task of a client: consumers share the partitions, producers write to all."""
        every = tuple(range(self._plan.partitions))
        return Task(
            phase=phase,
            bootstrap=self._connection.bootstrap,
            security=self._connection.librdkafka(),
            topic=topic,
            partitions=every[number :: self._plan.clients] if phase == "consume" else every,
            record_size=self._plan.record_size,
            seconds=self._plan.seconds,
            acks=self._plan.acks,
            compression=compression,
            rate=self._plan.rate,
        )

    def _progress(self, workers: Workers, task: Task) -> Iterator[int]:
        """Yield the number of records so far, and show a progress bar with the current rate."""
        what = task.phase if task.compression == "none" else f"{task.phase}, {task.compression}"
        with bar(what, task.seconds) as advance:
            before = 0.0
            for records, seconds in workers.progress():
                rate = records / seconds if seconds else 0.0
                speed = f"{rate:,.0f} records/s, {size(rate * task.record_size)}/s"
                advance(seconds - before, f"{what}: {speed}")
                before = seconds
                yield records


_LIMITS: Final = {
    "client": "the client is the limit: one of its threads is always busy, and the brokers could do more. "
    "More --clients would show how much.",
    "broker": "the broker is the limit: one of its threads is always busy.",
    "machine": "the machine is the limit: clients and brokers use all of its cores. "
    "Clients on another machine would leave more to the brokers.",
    OTHERS: "other programs are the limit: they use the machine's cores, and these figures say little. "
    "Try again when it is idle.",
    "unknown": "",
}


def draw(found: Outcome) -> Drawable:
    """Return the setup, the figures, and what limited them."""
    parts: list[Drawable] = [_head(found)]
    if found.throughput:
        columns = ["", "records/s", "bytes/s", "records", "seconds", "client cores", "broker cores", "limit"]
        parts.append(table(columns, map(_row, found.throughput)))
    if found.received is not None and found.acknowledged is not None:
        columns = [f"at {found.plan.rate:,} records/s", "p50", "p95", "p99", "p99.9", "max"]
        rows = [("acknowledged", *_times(found.acknowledged)), ("received", *_times(found.received))]
        parts.append(table(columns, rows))
    if remarks := list(_remarks(found)):
        parts.append("\n".join(remarks))
    return together(parts)


def _head(found: Outcome) -> str:
    plan = found.plan
    return (
        f"{count(found.brokers, 'broker')}, {count(plan.partitions, 'partition')}, "
        f"{count(plan.replicas, 'replica')} each, acks={plan.acks}, records of {plan.record_size:,} bytes, "
        f"{count(plan.clients, 'client')}"
    )


def _row(each: Throughput) -> tuple[object, ...]:
    return (
        each.phase if each.compression == "none" else f"{each.phase}, {each.compression}",
        f"{each.records_per_s:,.0f}",
        size(each.bytes_per_s),
        f"{each.records:,}",
        f"{each.seconds:.1f}",
        f"{each.clients.cores:.2f}",
        None if each.brokers is None else f"{each.brokers.cores:.2f}",
        None if each.limit == "unknown" else each.limit,
    )


def _times(latency: Latency) -> tuple[str, ...]:
    every = (latency.p50, latency.p95, latency.p99, latency.p999, latency.max)
    return tuple(f"{each:.2f} ms" for each in every)


def _remarks(found: Outcome) -> Iterator[str]:
    """Yield each limit once, with the phases that it applies to."""
    phases: dict[str, dict[str, None]] = {}
    for each in found.throughput:
        if sentence := limit_sentence(each):
            phases.setdefault(sentence, {})[each.phase] = None
    for sentence, limited in phases.items():
        yield f"{' and '.join(limited)}: {sentence}"


def limit_sentence(each: Throughput) -> str:
    """Return what the limit means and what to do; an empty text if the limit is not known."""
    if each.limit == "machine" and each.brokers is None:
        return "the machine is the limit: the clients use all of its cores, and the brokers could do more."
    return _LIMITS[each.limit]
