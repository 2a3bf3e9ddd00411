"""What happens while the pipeline runs: trucks drive, a broker is killed and restarted, Spark catches up."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from headrace.cli.demo import trucks
from headrace.cli.demo.show import Figures, Show
from headrace.cli.demo.trucks import Fleet
from headrace.cli.support.process import CommandFailed
from headrace.client.cluster.cluster import Cluster
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition
from headrace.spark.offsets import from_json
from headrace.system.background import BackgroundThread
from headrace.tables.reader.cluster import ClusterConnections as OffsetReader
from headrace.tables.reader.offsets import LATEST

BROKERS: Final = 3
PARTITIONS: Final = 6
ARCHIVE: Final = "trucks.archive"  # the query that fills the table
SPEEDS: Final = "trucks.speeds"
ALERTS: Final = "trucks.alerts"
_TIMEOUT_S: Final = 180.0  # the machine may be busy with other things
_POLL_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The broker that was killed, how long it took until it was in sync again, and the longest pause."""

    broker: int
    back_s: float
    longest_pause_s: float


class Story:
    """Runs in a thread of its own: Spark needs the thread in which its session was created."""

    def __init__(self, bootstrap: str, fleet: Fleet, figures: Figures, show: Show, seconds: int) -> None:
        self._bootstrap = bootstrap
        self._fleet = fleet
        self._figures = figures
        self._show = show
        self._seconds = seconds
        self.crash: Crash | None = None
        self._over = threading.Event()
        self._error: Exception | None = None
        self._thread: BackgroundThread | None = None

    def start(self, at_end: Callable[[], None]) -> None:
        """Start the story; `at_end` is called when it has ended, even by an error."""

        def run() -> None:
            try:
                self._run()
            except Exception as error:  # noqa: BLE001  `stop` raises it
                self._error = error
            finally:
                at_end()

        self._thread = BackgroundThread(run, name="story", stop=self._over.set)
        self._thread.start()

    def stop(self) -> None:
        """Skip the rest of the story; raise the error that ended it."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        self._until("the table has rows", lambda: self._figures.last(ARCHIVE) is not None)
        self._drive()
        self._kill()
        self._drive()
        self._fleet.stop()
        ends = end_offsets(self._bootstrap, trucks.POSITIONS)
        self._until("Spark has caught up", lambda: self._have_read(ends))

    def _drive(self) -> None:
        until = time.monotonic() + self._seconds
        self._until("the trucks have driven", lambda: time.monotonic() > until)

    def _kill(self) -> None:
        victim = Cluster(self._bootstrap).partitions_of(trucks.POSITIONS)[0].leader or 0
        brokers = Cluster(self._bootstrap).status().brokers
        pid = next(broker.pid for broker in brokers if broker.id == victim)
        if pid is None:
            raise CommandFailed(f"broker {victim} does not report its process id")
        self._fleet.longest_pause_s = 0.0
        os.kill(pid, signal.SIGKILL)
        began = time.perf_counter()
        self._figures.brokers = f"broker {victim} is dead"
        self._until(f"broker {victim} is back", lambda: self._is_whole_without(pid))
        took, pause_s = time.perf_counter() - began, self._fleet.longest_pause_s
        self.crash = Crash(broker=victim, back_s=took, longest_pause_s=pause_s)
        self._figures.brokers = f"{BROKERS} brokers"
        self._show.step("killed", f"broker {victim} with SIGKILL; it is back and in sync", took)
        self._show.step("paused", "the fleet, at most, between two acknowledgements", pause_s)

    def _is_whole_without(self, pid: int) -> bool:
        """Return whether all brokers run, none of them as process `pid`, with all replicas in sync."""
        with suppress(ClientError):
            status = Cluster(self._bootstrap).status()
            pids = {broker.pid for broker in status.brokers} - {None}
            return len(pids) == BROKERS and pid not in pids and not status.under_replicated
        return False

    def _have_read(self, ends: dict[TopicPartition, int]) -> bool:
        """Return whether every query has read all positions."""
        for query in (ARCHIVE, SPEEDS, ALERTS):
            last = self._figures.last(query)
            read = {} if last is None else from_json(last.offsets)
            if any(read.get(partition, 0) < end for partition, end in ends.items()):
                return False
        return True

    def _until(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not is_so() and not self._over.is_set():
            if time.monotonic() > deadline:
                raise CommandFailed(f"waited {_TIMEOUT_S:.0f} s in vain until {what}")
            self._figures.print_line()
            self._over.wait(_POLL_S)


def end_offsets(bootstrap: str, topic: str) -> dict[TopicPartition, int]:
    """Return the end offsets of the partitions of a topic."""
    reader = OffsetReader(bootstrap)
    try:
        return reader.offsets({TopicPartition(topic, index): LATEST for index in range(PARTITIONS)})
    finally:
        reader.close()
