"""The backups of docs/operations.md, made while clients write, and clusters that start from them."""

import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from cli.command import Command
from support.process import ClusterProcess, UpProcess
from wire.confluent import read

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations.md"
PARTITIONS: Final = (0, 1, 2)
GROUP: Final = "billing"
WAIT_S: Final = 60.0
ROUNDS: Final = 3  # of the load, before and between copies


@dataclass(frozen=True, slots=True)
class Written:
    """What clients were told: values by partition and offset, committed transactions, a committed offset."""

    records: dict[tuple[int, int], bytes] = field(default_factory=dict)
    transactions: frozenset[bytes] = frozenset()
    offset: int = 0  # of the group, in partition 0
    rounds: int = 0


class Load:
    """Writes records, transactions over two topics and offsets of a group, one after the other."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.written = Written()
        self._error: Exception | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wait_for(self, rounds: int) -> Written:
        """Return what is written when so many more rounds are done."""
        wanted, deadline = self.written.rounds + rounds, time.monotonic() + WAIT_S
        while self.written.rounds < wanted:
            assert self._error is None, self._error
            assert time.monotonic() < deadline, self.written.rounds
            time.sleep(0.005)
        return self.written

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._error is None, self._error

    def _run(self) -> None:
        try:
            self._write()
        except Exception as error:  # noqa: BLE001  the test fails with it
            self._error = error

    def _write(self) -> None:
        shared = {"bootstrap.servers": self._bootstrap, "enable.idempotence": True}
        plain = Producer({**shared, "linger.ms": 1})
        atomic = Producer({**shared, "transactional.id": "pairs", "transaction.timeout.ms": 5000})
        atomic.init_transactions(WAIT_S)
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": GROUP})
        try:
            self._write_rounds(plain, atomic, consumer)
        finally:
            consumer.close()

    def _write_rounds(self, plain: Producer, atomic: Producer, consumer: Consumer) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            records = dict(self.written.records)

            def delivered(error: Any, message: Any, records: dict[tuple[int, int], bytes] = records) -> None:
                assert error is None, error
                records[message.partition(), message.offset()] = message.value()

            for partition in PARTITIONS:
                plain.produce("orders", b"%d" % number, partition=partition, on_delivery=delivered)
            assert plain.flush(WAIT_S) == 0
            self.written = replace(self.written, records=records)
            atomic.begin_transaction()
            for topic in ("left", "right"):
                atomic.produce(topic, b"%d" % number, partition=0)
            atomic.commit_transaction(WAIT_S)
            transactions = self.written.transactions | {b"%d" % number}
            self.written = replace(self.written, transactions=transactions)
            consumer.commit(offsets=[TopicPartition("orders", 0, number)], asynchronous=False)
            self.written = replace(self.written, offset=number, rounds=self.written.rounds + 1)


@contextmanager
def loaded(process: UpProcess) -> Iterator[Load]:
    headrace = Command(process.bootstrap)
    for topic, partitions in (("orders", len(PARTITIONS)), ("left", 1), ("right", 1)):
        headrace.ok("topic", "create", topic, "--partitions", str(partitions))
    load = Load(process.bootstrap)
    try:
        yield load
    finally:
        load.stop()


def back_up(data: Path, backup: Path) -> None:
    """Run the commands of the page."""
    (commands,) = re.findall(r"^    \(\n.*?^    \)\n", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = commands.replace("DIR", str(data)).replace("BACKUP", str(backup))
    subprocess.run(["bash", "-c", script], check=True, timeout=WAIT_S)


def check(bootstrap: str, before: Written, *, is_one_moment: bool) -> None:
    """Compare a restored cluster with what was written before its backup."""
    headrace = Command(bootstrap)
    found = {
        (message.partition(), message.offset()): message.value()
        for message in read(bootstrap, "orders", partitions=PARTITIONS)
    }
    assert before.records.items() <= found.items()
    for partition in PARTITIONS:
        values = [value for (of, _), value in sorted(found.items()) if of == partition]
        assert values == [b"%d" % number for number in range(1, len(values) + 1)]

    (group,) = headrace.ok("group", "describe", GROUP, "--json").json
    (committed,) = (each["committed"] for each in group["partitions"] if each["partition"] == 0)
    assert before.offset <= committed <= len([1 for partition, _ in found if partition == 0])

    deadline = time.monotonic() + WAIT_S
    unfinished = ("--state", "ongoing", "--state", "preparecommit", "--state", "prepareabort")
    while headrace.ok("txn", "list", *unfinished, "--json").json:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    left, right = (
        [each.value() for each in read(bootstrap, topic, isolation_level="read_committed")]
        for topic in ("left", "right")
    )
    assert before.transactions <= set(left) & set(right)
    assert len(left) == len(set(left))
    assert not is_one_moment or left == right

    headrace.ok("produce", "orders", "new")  # the restored cluster goes on


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_paused_cluster_is_copied_and_starts_elsewhere(tmp_path: Path, brokers: int) -> None:
    """With one broker, broker and coordinator are one process."""
    with ClusterProcess(tmp_path / "here", brokers) as here:
        with loaded(here) as load:
            before = load.wait_for(ROUNDS)
            (tmp_path / "there").mkdir()
            back_up(here.data, tmp_path / "there" / "data")
            load.wait_for(ROUNDS)
        check(here.bootstrap, load.written, is_one_moment=True)
        with ClusterProcess(tmp_path / "there", brokers) as there:
            check(there.bootstrap, before, is_one_moment=True)


@pytest.mark.extended
def test_brokers_that_are_copied_one_after_the_other_start_elsewhere(tmp_path: Path) -> None:
    """As on several machines: the copies are of different moments, and the coordinator's is the last."""
    with ClusterProcess(tmp_path / "here") as here:
        there = tmp_path / "there" / "data"
        with loaded(here) as load:
            before = load.wait_for(ROUNDS)
            for name in ("broker-1", "broker-2", "broker-3", "coordinator"):
                with paused(here, name):
                    shutil.copytree(here.data / name, there / name)
                load.wait_for(ROUNDS)
            shutil.copy(here.data / "jaas.conf", there)
        check(here.bootstrap, load.written, is_one_moment=True)
        with ClusterProcess(tmp_path / "there") as restored:
            check(restored.bootstrap, before, is_one_moment=False)


@contextmanager
def paused(cluster: ClusterProcess, name: str) -> Iterator[None]:
    pid = cluster.members[name]
    subprocess.run(["kill", f"-{signal.SIGSTOP.value}", str(pid)], check=True)
    try:
        yield
    finally:
        subprocess.run(["kill", f"-{signal.SIGCONT.value}", str(pid)], check=True)
