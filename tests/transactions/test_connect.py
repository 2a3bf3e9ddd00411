"""Kafka Connect writes every record of a source exactly once, on three brokers, whoever is killed."""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from transactions.brokers import Brokers
from transactions.committed import CommittedReader, committed_reader
from transactions.connect import Connect, Worker
from transactions.coordinators import busy_coordinator
from transactions.java_programs import JavaPrograms
from wire.confluent import read
from wire.group_stories.waiting import eventually

# Restarts of tasks are shown at the end of the run, and do not fail it.
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("always:no record after")]

TOPIC, NAME, PARTITIONS = "numbers", "numbers", 3
TASKS: Final = 3
COUNT: Final = 9000
GROUP: Final = 10  # numbers in a transaction of one task, as in NumbersSource.java
START_S: Final = 180
STUCK_S: Final = 240  # without a new record of some task
RESTART_S: Final = 45  # after which tasks are restarted, as an operator would: see FINDINGS.md
TRANSACTIONAL_IDS: Final = f"connect-{NAME}-"


class Story:
    """A source connector on two workers, to which faults happen."""

    def __init__(self, brokers: Brokers, workers: list[Worker], reader: CommittedReader) -> None:
        self.brokers = brokers
        self.workers = workers
        self.connect = Connect(workers)
        self.reader = reader

    def configure(self, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        eventually(
            lambda: self.connect.configure(NAME, given),
            timeout_s=START_S,
            pause_s=1,
            tell=self.workers[0].end_of_log,
        )

    def wait_for(self, count: int) -> None:
        """Wait until a read_committed reader has seen so many records of each task."""
        seen, since = self._fewest(), time.monotonic()
        restart_at = since + RESTART_S
        while self._fewest() < count:
            self.reader.read()
            if self._fewest() > seen:
                seen, since = self._fewest(), time.monotonic()
                restart_at = since + RESTART_S
            elif time.monotonic() > restart_at:
                self._restart_tasks()
                restart_at = time.monotonic() + RESTART_S
            assert time.monotonic() < since + STUCK_S, self._describe()

    def _fewest(self) -> int:
        return min(len(self.reader.values[f"task-{index}"]) for index in range(TASKS))

    def _restart_tasks(self) -> None:
        """Restart all tasks, with a warning and the stacks of their threads in the workers' logs."""
        for worker in self.workers:
            worker.dump_threads()
        causes = [trace.partition("\n")[0] for trace in self.connect.failures(NAME)]
        is_restarted = self.connect.restart_tasks(NAME)
        warnings.warn(
            f"no record after {self._fewest()} of a task for {RESTART_S} s; its tasks "
            f"{'were' if is_restarted else 'could not be'} restarted: {causes}",
            stacklevel=3,
        )

    def _describe(self) -> str:
        logs = "\n".join(worker.end_of_log() for worker in self.workers)
        failures = "\n".join(self.connect.failures(NAME))
        return f"no record after {self._fewest()} of a task for {STUCK_S} s: {failures}\n{logs}"

    def busy_worker(self) -> Worker:
        """Return the worker that has the most tasks."""
        tasks = eventually(lambda: self.connect.tasks_of(NAME), timeout_s=START_S, pause_s=0.5)
        return max(self.workers, key=lambda worker: len(tasks.get(worker.url, ())))


@pytest.fixture
def story(brokers: Brokers, programs: JavaPrograms, tmp_path: Path) -> Iterator[Story]:
    brokers.create_topic(TOPIC, partitions=PARTITIONS)
    workers = [Worker(programs, brokers.bootstrap, tmp_path, name) for name in ("first", "second")]
    try:
        for worker in workers:
            worker.start()
        with committed_reader(brokers.bootstrap, TOPIC, PARTITIONS) as reader:
            yield Story(brokers, workers, reader)
    finally:
        for worker in workers:
            worker.kill()


def is_aborted(number: int) -> bool:
    """Return whether the connector aborts the transaction of a number, if it defines transactions."""
    return number // TASKS // GROUP % 4 == 3


@pytest.mark.parametrize("boundary", ["poll", "connector"])
def test_every_number_is_written_exactly_once(story: Story, boundary: str) -> None:
    expected = [number for number in range(COUNT) if boundary == "poll" or not is_aborted(number)]
    story.configure(
        connector_class="NumbersSource",
        tasks_max=str(TASKS),
        topic=TOPIC,
        count=str(COUNT),
        pause_ms="20",
        exactly_once_support="required",
        transaction_boundary=boundary,
    )
    share = len(expected) // TASKS // 10
    first, second = story.workers
    story.wait_for(share)

    first.kill()
    first.start()
    story.wait_for(2 * share)

    second.kill()
    second.start()
    story.wait_for(3 * share)

    broker = busy_coordinator(story.brokers.bootstrap, TRANSACTIONAL_IDS)
    story.brokers.kill(broker)
    story.wait_for(5 * share)
    story.brokers.restart(broker)

    zombie = story.busy_worker()
    zombie.pause()  # the other worker fences its producers and takes over its tasks
    story.wait_for(7 * share)
    zombie.resume()
    story.wait_for(8 * share)

    for worker in story.workers:
        worker.kill()
    for worker in story.workers:
        worker.start()
    story.wait_for(len(expected) // TASKS)
    check_numbers(story.brokers.bootstrap, expected)


def check_numbers(bootstrap: str, expected: list[int]) -> None:
    """Check that a new reader gets all the numbers of each task, each once and in order."""
    found: dict[str, list[int]] = {}
    for message in read(bootstrap, TOPIC, partitions=range(PARTITIONS), isolation_level="read_committed"):
        found.setdefault(message.key().decode(), []).append(int(message.value()))
    assert found == {
        f"task-{index}": [number for number in expected if number % TASKS == index] for index in range(TASKS)
    }
