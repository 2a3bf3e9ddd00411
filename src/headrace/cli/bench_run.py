"""A bench from its first phase to its last: topics are made, loaded, read, and deleted again."""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from headrace.cli.bench_cpu import Meter, are_here, limited_by
from headrace.cli.progress import bar
from headrace.cli.texts import size
from headrace.client.admin.admin import Admin
from headrace.client.cluster.cluster import Cluster
from headrace.client.errors import NoSuchTopic
from headrace.client.load.figures import Latency, Phase, Task, Throughput, latency, throughput
from headrace.client.load.run import Workers

PREFIX: Final = "headrace-bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What somebody wants to know."""

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
    """What was found out so far."""

    brokers: int
    plan: Plan
    throughput: list[Throughput] = field(default_factory=list)
    acknowledged: Latency | None = None
    received: Latency | None = None


class Bench:
    """On one cluster. Whatever ends it, its topics are gone."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        self._bootstrap = bootstrap
        self._plan = plan
        self._admin = Admin(bootstrap)
        with Cluster(bootstrap) as cluster:
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
            with suppress(NoSuchTopic):  # it could not be made
                self._admin.delete_topic(name)

    def _load(self, phase: Phase, topic: str, compression: str) -> None:
        number = self._plan.clients
        if phase == "consume":
            number = min(number, self._plan.partitions)
        tasks = [self._task(phase, topic, compression, each) for each in range(number)]
        with Workers(tasks) as workers:
            pids = [worker.pid for worker in workers.all]
            meter = Meter([*pids, *(self._pids or ())])
            for records in self._drawn(workers, tasks[0]):
                if records and not workers.done:
                    meter.look()
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
            for _ in self._drawn(workers, task):
                pass
            told = workers.all[0].latest
        self.outcome.acknowledged = latency(told["acknowledged_ms"])
        self.outcome.received = latency(told["received_ms"])

    def _task(self, phase: Phase, topic: str, compression: str, number: int) -> Task:
        """The partitions are shared among consumers; producers write to all."""
        every = tuple(range(self._plan.partitions))
        return Task(
            phase=phase,
            bootstrap=self._bootstrap,
            topic=topic,
            partitions=every[number :: self._plan.clients] if phase == "consume" else every,
            record_size=self._plan.record_size,
            seconds=self._plan.seconds,
            acks=self._plan.acks,
            compression=compression,
            rate=self._plan.rate,
        )

    def _drawn(self, workers: Workers, task: Task) -> Iterator[int]:
        """How many records it is, while a bar moves, with what it comes to at the moment."""
        what = task.phase if task.compression == "none" else f"{task.phase}, {task.compression}"
        with bar(what, task.seconds) as advance:
            before = 0.0
            for records, seconds in workers.progress():
                rate = records / seconds if seconds else 0.0
                speed = f"{rate:,.0f} records/s, {size(rate * task.record_size)}/s"
                advance(seconds - before, f"{what}: {speed}")
                before = seconds
                yield records
