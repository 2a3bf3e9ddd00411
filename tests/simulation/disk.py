"""A machine's disk: what stays of a broker when its process ends, or when the machine goes down.

What a process has written the system keeps, whatever becomes of the process. Only a machine that goes down
loses what was not brought to the disk yet. The small files (epochs, checkpoints, the boot's name) are synced
when they are written, as `headrace.storage` does it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from headrace.protocol.ids import TopicPartition
from headrace.storage.checks.losses import Losses
from headrace.storage.open_files import OpenFiles
from headrace.storage.seed import Seed
from simulation.log import SimLog


class SimDisk:
    """All that stays of a broker when its process ends."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.logs: dict[TopicPartition, SimLog] = {}
        self.topic_ids: dict[TopicPartition, bytes] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.clean = False
        self.losses: bytes | None = None  # the content of headrace.boot
        self.boots = 0  # of the machine

    def power_cut(self) -> None:
        """The machine goes down. What is lost is not known to anybody before it is opened again."""
        self.boots += 1
        if not self.clean:
            for log in self.logs.values():
                log.lose_tail()


class SimSeedPlan(NamedTuple):
    """The face of `headrace.storage.seed.SeedPlan`."""

    log: SimLog
    cuts: int
    seed: Seed
    stagings: dict[Any, Any]

    @property
    def is_stale(self) -> bool:
        return self.log.cuts != self.cuts

    def link_into(self, staging: Path, owner: object) -> None:
        del owner
        self.stagings[staging] = self.log.seeded(self.seed.end_offset, self.log.now_ms)


class SimLogs:
    """The face of `headrace.storage.directory.LogDirectory`."""

    def __init__(
        self, disk: SimDisk, now_ms: Callable[[], int], random: Random, stagings: dict[Any, Any]
    ) -> None:
        """`stagings` are the directories of seeds on all disks."""
        self._disk = disk
        self._stagings = stagings
        self._now_ms = now_ms
        self._random = random
        self.losses = Losses(
            disk.losses,
            boot=str(disk.boots),
            identity=0,
            clean=disk.clean,
            write=partial(setattr, disk, "losses"),
        )
        disk.clean = False
        self._prepared = self._written = 0  # checkpoints, by number
        self.files = OpenFiles()  # of which none is ever open
        self.suspected: set[Any] = set()  # logs with damaged segments: there are none
        self.failed: dict[TopicPartition, str] = {}
        self.truncatable: dict[TopicPartition, int] = {}
        self.cleaner_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks = dict(disk.high_watermarks)
        self.logs, self.topic_ids = disk.logs, disk.topic_ids
        for id_ in [id_ for id_, log in self.logs.items() if not log.log_end_offset]:
            del self.logs[id_], self.topic_ids[id_]  # a log without records has no files
        for log in self.logs.values():
            log.now_ms = now_ms
            log.reopen()

    def create(self, id_: TopicPartition, topic_id: bytes, config: object) -> SimLog:
        del config
        log = self.logs[id_] = SimLog(self._now_ms, self._random)
        self.topic_ids[id_] = topic_id
        return log

    def set_topic_id(self, id_: TopicPartition, topic_id: bytes) -> None:
        self.topic_ids[id_] = topic_id

    def flush_oldest_files(self) -> None:
        """Do nothing: there are no files."""

    def take_changes(self) -> Iterator[None]:
        """Do nothing: a checkpoint here has only high watermarks."""
        return iter(())

    def to_flush(self) -> list[TopicPartition]:
        """Nothing is flushed in the background here: a power cut loses as much as it can."""
        return []

    def delete(self, *ids: TopicPartition) -> None:
        for id_ in ids:
            self.retire(id_)

    def retire(self, id_: TopicPartition) -> bool:
        self.logs.pop(id_, None)
        self.topic_ids.pop(id_, None)
        self.high_watermarks.pop(id_, None)
        self._disk.high_watermarks.pop(id_, None)
        return False  # there are no directories here

    def plan_seed(self, id_: TopicPartition, high_watermark: int) -> SimSeedPlan:
        """Segments may end anywhere below the high watermark."""
        log = self.logs[id_]
        start = log.log_start_offset
        seed = Seed(start, self._random.randint(start, max(start, high_watermark)))
        return SimSeedPlan(log, log.cuts, seed, self._stagings)

    def prepare_staging(self, id_: TopicPartition) -> Callable[[], Path]:
        return lambda: Path(f"/{id_}/{self._random.random()}")

    def open_seeded(
        self, id_: TopicPartition, topic_id: bytes, config: object, staging: Path, seed: Seed
    ) -> SimLog:
        del id_, topic_id, config
        log: SimLog = self._stagings.pop(staging)
        assert (log.log_start_offset, log.log_end_offset) == seed, (log, seed)
        log.now_ms = self._now_ms
        return log

    def add_seeded(self, id_: TopicPartition, topic_id: bytes, log: SimLog) -> None:
        self.logs[id_] = log
        self.topic_ids[id_] = topic_id

    def discard_seeded(self, id_: TopicPartition, staging: Path) -> None:
        del id_
        self._stagings.pop(staging, None)

    def unlink_deleted(self) -> None:
        """There are no files here."""

    def prepare_checkpoint(self) -> Callable[[], None]:
        offsets = dict(self.high_watermarks)
        self._prepared += 1
        number = self._prepared

        def write() -> None:
            if number > self._written:
                self._written = number
                self._disk.high_watermarks = offsets

        return write

    def close(self) -> None:
        for log in self.logs.values():
            log.flush()
        self.prepare_checkpoint()()
        self._disk.clean = True
