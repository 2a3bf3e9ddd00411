"""What happens while the pipeline runs: trucks drive, a broker dies and comes back, Spark catches up."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from headrace.background import BackgroundThread
from headrace.cli.demo import trucks
from headrace.cli.demo.fleet import Fleet
from headrace.cli.demo.machine import Up
from headrace.cli.demo.show import Figures, Show
from headrace.cli.process import Refused
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition
from headrace.spark.cluster import Cluster
from headrace.spark.offsets import LATEST, from_json

BROKERS: Final = 3
PARTITIONS: Final = 6
_PATIENCE_S: Final = 180.0  # with a machine that has other things to do, too
_LOOK_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """A broker that was killed, when it was back and in sync, and what clients noticed of it."""

    broker: int
    back_s: float
    longest_pause_s: float


class Story:
    """Told in a thread of its own: Spark wants the one that its session was made in."""

    def __init__(self, up: Up, fleet: Fleet, figures: Figures, show: Show, seconds: int) -> None:
        self._up = up
        self._fleet = fleet
        self._figures = figures
        self._show = show
        self._seconds = seconds
        self.crash: Crash | None = None
        self._over = threading.Event()
        self._wrong: Exception | None = None
        self._thread: BackgroundThread | None = None

    def begin(self, when_over: Callable[[], None]) -> None:
        """Let it happen; `when_over` is called at the end, whatever that is."""

        def tell() -> None:
            try:
                self._tell()
            except Exception as error:  # noqa: BLE001  raised where it is waited for
                self._wrong = error
            finally:
                when_over()

        self._thread = BackgroundThread(tell, name="story", stop=self._over.set)
        self._thread.start()

    def end(self) -> None:
        """Break off what has not happened yet; raise what went wrong."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._wrong is not None:
            raise self._wrong

    def _tell(self) -> None:
        self._until("the table fills", lambda: "trucks.archive" in self._figures.rows)
        self._drive()
        self._kill()
        self._drive()
        self._fleet.stop()
        ends = ends_of(self._up.bootstrap, trucks.POSITIONS)
        self._until("Spark has caught up", lambda: self._has_read(ends))

    def _drive(self) -> None:
        until = time.monotonic() + self._seconds
        self._until("trucks drive", lambda: time.monotonic() > until)

    def _kill(self) -> None:
        victim = self._up.leader_of(trucks.POSITIONS)
        self._fleet.longest_pause_s = 0.0
        dead = self._up.kill(victim)
        began = time.perf_counter()
        self._figures.brokers = f"broker {victim} is dead"
        self._until(f"broker {victim} is back", lambda: self._is_whole_without(dead))
        took, pause_s = time.perf_counter() - began, self._fleet.longest_pause_s
        self.crash = Crash(broker=victim, back_s=took, longest_pause_s=pause_s)
        self._figures.brokers = f"{BROKERS} brokers"
        self._show.step("killed", f"broker {victim} with SIGKILL; it is back and in sync", took)
        self._show.step("paused", "the fleet, at most, between two acknowledgements", pause_s)

    def _is_whole_without(self, pid: int) -> bool:
        """Whether all brokers are there, none of them that process, and all replicas in sync."""
        with suppress(ClientError):
            status = self._up.status
            pids = {each.pid for each in status.brokers} - {None}
            return len(pids) == BROKERS and pid not in pids and not status.under_replicated
        return False

    def _has_read(self, ends: dict[TopicPartition, int]) -> bool:
        done = self._figures.latest["trucks.archive"]
        read = from_json(done.offsets)
        return all(read.get(place, 0) >= end for place, end in ends.items())

    def _until(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not is_so() and not self._over.is_set():
            if time.monotonic() > deadline:
                raise Refused(f"for {_PATIENCE_S:.0f} s it was not so that {what}")
            self._figures.look()
            self._over.wait(_LOOK_S)


def ends_of(bootstrap: str, topic: str) -> dict[TopicPartition, int]:
    """How far the partitions of a topic go."""
    cluster = Cluster(bootstrap)
    try:
        return cluster.offsets({TopicPartition(topic, index): LATEST for index in range(PARTITIONS)})
    finally:
        cluster.close()
