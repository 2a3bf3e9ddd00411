"""Workers that read, process and write in transactions: whoever dies, each record is in the target once."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from cluster.asking import coordinator_of
from cluster.brokers import BrokerProcess
from cluster.stage import Scene
from cluster.waiting import until
from headrace.protocol.schema.list_groups import ListGroupsRequest
from headrace.protocol.schema.list_transactions import ListTransactionsRequest
from wire.confluent import TIMEOUT_S, settings
from wire.raw import RawClient

WORKERS: Final = 6
RECORDS: Final = 1800
SOURCE, TARGET, GROUP = "exactly-once-in", "exactly-once-out", "exactly-once"
_WORKER: Final = Path(__file__).with_name("exactly_once_worker.py")
_TRANSACTION: Final = 1  # a type of coordinator
_PARTITIONS: Final = 3
_MORE: Final = 60  # records between two kills
_STUCK_S: Final = 20.0  # without a record: a worker's client may wait for a broker that is gone
_COMPLETE_S: Final = 120.0


class Workers:
    """Processes that are replaced when they end, as a supervisor would."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._running = {number: self._start(number) for number in range(WORKERS)}

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        arguments = [self._bootstrap, f"worker-{number}", GROUP, SOURCE, TARGET]
        return subprocess.Popen(
            [sys.executable, _WORKER, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self, number: int) -> None:
        """Kill a worker in the middle of whatever it does, and start its successor."""
        self._running[number].kill()
        self._running[number].wait()
        self._running[number] = self._start(number)

    def replace_ended(self) -> None:
        for number, worker in self._running.items():
            if worker.poll() is not None:
                self._running[number] = self._start(number)

    def stop(self) -> None:
        for worker in self._running.values():
            worker.kill()
            worker.wait()


class Seen:
    """What a read_committed consumer has got of the target, in all."""

    def __init__(self, bootstrap: str) -> None:
        self.values: list[int] = []
        self._consumer = Consumer(
            settings(bootstrap, group_id="exactly-once-reader", isolation_level="read_committed")
        )
        self._consumer.assign([TopicPartition(TARGET, index, 0) for index in range(_PARTITIONS)])

    def read(self) -> int:
        """Read what there is, and return how many values are known now."""
        for message in self._consumer.consume(500, 0.2):
            if not message.error():
                self.values.append(int(message.value()))
        return len(self.values)

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def working(scene: Scene) -> Iterator[tuple[Workers, Seen]]:
    """Six workers, records for them, and at the end each record exactly once."""
    cluster = scene.cluster
    cluster.create_topic(SOURCE, WORKERS)
    cluster.create_topic(TARGET, _PARTITIONS)
    producer = Producer(settings(cluster.bootstrap))
    for number in range(RECORDS):
        producer.produce(SOURCE, b"%d" % number, partition=number % WORKERS)
    assert producer.flush(TIMEOUT_S) == 0
    workers, seen = Workers(cluster.bootstrap), Seen(cluster.bootstrap)
    try:
        yield workers, seen
        _await(workers, seen, RECORDS)
        until("nothing more comes", lambda: seen.read() == seen.read())
    finally:
        workers.stop()
        seen.close()
    until("the dead workers have left, and their transactions are over", lambda: _is_quiet(scene))
    twice = len(seen.values) - len(set(seen.values))
    missing = RECORDS - len(set(seen.values))
    scene.figures["exactly once"] = len(seen.values)
    if twice or missing:
        scene.problem(f"of {RECORDS} records {missing} are missing and {twice} are there twice")


def _await(workers: Workers, seen: Seen, count: int) -> None:
    """Wait until so many different records were seen.

    Workers that end are replaced. So are all of them if nothing comes for a while: a client may wait for the
    answer of a broker that is gone, longer than anybody wants to.
    """
    deadline = progress_at = time.monotonic()
    deadline += _COMPLETE_S
    while len(set(seen.values)) < count and time.monotonic() < deadline:
        workers.replace_ended()
        before = len(seen.values)
        if seen.read() > before:
            progress_at = time.monotonic()
        elif time.monotonic() - progress_at > _STUCK_S:
            for number in range(WORKERS):
                workers.kill(number)
            progress_at = time.monotonic()


def _is_quiet(scene: Scene) -> bool:
    """Whether no coordinator has anything to write any more. What a broker writes last, others may lack."""
    unfinished = ListTransactionsRequest(
        state_filters=["Ongoing", "PrepareCommit", "PrepareAbort"], producer_id_filters=[]
    )
    for address in scene.cluster.bootstrap.split(","):
        with RawClient(address) as client:
            listed = client.ask(unfinished, 0)
            groups = client.ask(ListGroupsRequest(), 4)
        if listed.error_code or listed.transaction_states or groups.error_code:
            return False
        if any(each.group_id == GROUP and each.group_state != "Empty" for each in groups.groups):
            return False
    return True


def _progress(workers: Workers, seen: Seen) -> None:
    _await(workers, seen, min(len(set(seen.values)) + _MORE, RECORDS))


def workers_are_killed_in_turn(scene: Scene) -> None:
    with working(scene) as (workers, seen):
        for number in range(WORKERS):
            _progress(workers, seen)
            workers.kill(number)


def workers_and_brokers_are_killed(scene: Scene) -> None:
    """The coordinators of a transaction and of the group, and a leader, beside the workers."""
    addresses = scene.cluster.bootstrap.split(",")
    victims: list[Callable[[], BrokerProcess]] = [
        lambda: scene.cluster.brokers[coordinator_of(addresses, _TRANSACTION, "worker-0")],
        lambda: scene.cluster.brokers[coordinator_of(addresses, 0, GROUP)],
        lambda: scene.cluster.leader(TARGET, 0),
    ]
    with working(scene) as (workers, seen):
        for number, victim in enumerate(victims):
            _progress(workers, seen)
            workers.kill(number)
            broker = victim()
            broker.kill()
            _progress(workers, seen)
            broker.start()
            scene.cluster.heal()
