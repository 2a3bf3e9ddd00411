"""Periodic work: retention, compaction, flushes and checkpoints of logs, and the jobs of other components."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from headrace.broker.replicas.cleaner_process import CleanerProcess
from headrace.broker.replicas.partition import Partition
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.slices import STEP, Steps, Turns, in_slices
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.storage.compaction.cleaner import (
    Compacted,
    CompactionStopped,
    Plan,
    Throttle,
    install_in_steps,
    plan_compaction,
    run_compaction,
)
from headrace.storage.compaction.filter import BYTES_PER_KEY
from headrace.storage.directory import LogDirectory
from headrace.storage.errors import CorruptLog, StorageError
from headrace.storage.files import base_offset_of
from headrace.storage.retention import enforce_retention

T = TypeVar("T")
_FLUSH_INTERVAL_S = 1.0
_REMOVED_TOGETHER = 8  # segments, between which requests are served
_IDLE_FILE_S = 60.0  # a flushed file that was not used for so long, or up to twice as long, is closed
_CROWDED_PAUSE_S = 0.05
_MIN_CLEANER_BACKOFF_S = 0.1
_SMALL_PLAN_BYTES = 1024 * 1024  # which a thread compacts sooner than a process starts

logger = logging.getLogger(__name__)


class Job(NamedTuple):
    """Work that is repeated with pauses of `interval_s`."""

    run: Callable[[], Awaitable[None] | None]
    interval_s: float


class Housekeeping:
    """Runs its jobs from `start` to `stop`. A job that fails is logged, and runs again after its interval."""

    def __init__(
        self,
        *,
        config: Callable[[], BrokerConfig],
        partitions: Mapping[TopicPartition, Partition],
        moved: set[Partition],
        logs: Callable[[], LogDirectory],
        jobs: Callable[[], Iterable[Job]],
    ) -> None:
        """Take the jobs of other components from `jobs` when it starts.

        `moved` are partitions whose high watermark has moved since the last checkpoint.
        """
        self._config = config
        self._partitions = partitions
        self._moved = moved
        self._logs = logs
        self._jobs = jobs
        self._tasks: list[asyncio.Task[None]] = []
        self._running: set[asyncio.Future[Any]] = set()
        self._stopping = threading.Event()
        self._backoff_changed = asyncio.Event()
        self._waited_s = 0.0  # the backoff that the cleaner waits for now
        self._cleaner_process: CleanerProcess | None = None

    def start(self) -> None:
        config = self._config()
        jobs = [
            Job(self._flush, _FLUSH_INTERVAL_S),
            Job(self._retain, config.integer("log.retention.check.interval.ms") / 1000),
            Job(self._checkpoint, config.integer("replica.high.watermark.checkpoint.interval.ms") / 1000),
            Job(self._close_idle_files, _IDLE_FILE_S),
            *self._jobs(),
        ]
        self._tasks = [asyncio.create_task(self._repeat(job)) for job in jobs]
        self._tasks.append(asyncio.create_task(self._make_room_for_files()))
        if config.flag("log.cleaner.enable"):
            self._tasks.append(asyncio.create_task(self._run_cleaner()))

    def use_config(self) -> None:
        """Apply changed settings: another log.cleaner.backoff.ms counts from now on."""
        if self._cleaner_backoff_s != self._waited_s:
            self._backoff_changed.set()

    @property
    def _cleaner_backoff_s(self) -> float:
        return max(_MIN_CLEANER_BACKOFF_S, self._config().integer("log.cleaner.backoff.ms") / 1000)

    async def _run_cleaner(self) -> None:
        """Compact after each log.cleaner.backoff.ms; a changed backoff starts the wait again."""
        while True:
            self._backoff_changed.clear()
            self._waited_s = self._cleaner_backoff_s
            try:
                await asyncio.wait_for(self._backoff_changed.wait(), self._waited_s)
            except TimeoutError:
                await self._try(self.compact)

    def stop(self) -> None:
        self._stopping.set()
        for task in self._tasks:
            task.cancel()

    async def stopped(self) -> None:
        """Return when no job runs any more, in any thread."""
        await asyncio.gather(*self._tasks, *self._running, return_exceptions=True)

    async def _repeat(self, job: Job) -> None:
        while True:
            await asyncio.sleep(job.interval_s)
            await self._try(job.run)

    async def _try(self, run: Callable[[], Awaitable[None] | None]) -> None:
        try:
            running = run()
            if running is not None:
                await running
        except Exception:  # nobody would notice that this task has ended
            logger.exception("%s failed and will be retried", run.__name__)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread; `stopped` waits for it even if the caller is cancelled."""
        running = asyncio.ensure_future(asyncio.to_thread(work))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    def _online(self) -> list[Partition]:
        return [part for part in self._partitions.values() if part.log.offline is None]

    async def _flush(self) -> None:
        logs = self._logs()
        await in_slices(logs.take_changes())
        for id_ in logs.to_flush():
            partition = self._partitions.get(id_)
            if partition is None or partition.log.offline is not None:
                continue
            with logged("flush", partition, self._partitions):
                if partition.log.flush_is_due:
                    await self._in_thread(partition.log.flush)
                elif partition.log.has_unflushed_segments:
                    await self._in_thread(partition.log.flush_closed)

    async def _make_room_for_files(self) -> None:
        """Flush the least recently used files when many are open, so that they can be closed."""
        is_crowded = asyncio.Event()
        files = self._logs().files
        files.on_crowded = is_crowded.set
        is_crowded.set()
        while True:
            await is_crowded.wait()
            is_crowded.clear()
            await self._try(self._flush_oldest_files)
            await asyncio.sleep(_CROWDED_PAUSE_S)  # every file that is opened meanwhile reports it

    async def _flush_oldest_files(self) -> None:
        logs = self._logs()
        await self._in_thread(logs.flush_oldest_files)
        logs.files.close_excess()

    def _close_idle_files(self) -> None:
        self._logs().files.close_idle()

    async def _retain(self) -> None:
        for partition in self._online():
            with logged("retention", partition, self._partitions):
                await self._remove_old_segments(partition)
                log = partition.log
                log.producers.remove_expired(log.now_ms() - log.config.producer_id_expiration_ms)
                if log.has_deleted_files:
                    await self._in_thread(log.unlink_deleted)

    async def _remove_old_segments(self, partition: Partition) -> None:
        """Enforce retention, a few segments at a time: each of them takes a tenth of a millisecond."""
        removed, step = 0, _REMOVED_TOGETHER
        while step == _REMOVED_TOGETHER:
            step = enforce_retention(
                partition.log, high_watermark=partition.high_watermark, max_segments=_REMOVED_TOGETHER
            )
            removed += step
            await asyncio.sleep(0)
        if removed:
            logger.info("%s: %d old segments removed", partition.id, removed)

    async def _checkpoint(self) -> None:
        logs = self._logs()
        await in_slices(self._take_high_watermarks())
        await in_slices(logs.take_changes())
        await self._in_thread(logs.prepare_checkpoint())

    def _take_high_watermarks(self) -> Steps[None]:
        """Pass the high watermarks that have moved to the checkpoint; a log without files needs none."""
        offsets = self._logs().high_watermarks
        for number in range(len(self._moved)):
            if not number % STEP:
                yield
            if not self._moved:
                return
            partition = self._moved.pop()
            if partition.log.has_files and self._partitions.get(partition.id) is partition:
                offsets[partition.id] = partition.high_watermark

    async def compact(self) -> None:
        """Compact every log that has enough dirty records, unless log.cleaner.threads is 0."""
        if self._config().integer("log.cleaner.threads") == 0:
            return
        turns = Turns()
        try:
            for partition in tuple(self._partitions.values()):
                await turns.next()
                if partition.log.config.compact and partition.log.offline is None:
                    with logged("compaction", partition, self._partitions):
                        await self._compact_one(partition)
        finally:
            await self._end_cleaner_process()

    async def _compact_one(self, partition: Partition) -> None:
        offsets = self._logs().cleaner_offsets
        plan = plan_compaction(
            partition.log,
            first_dirty_offset=offsets.get(partition.id, 0),
            up_to_offset=partition.log.last_stable_offset(partition.high_watermark),
        )
        if plan is None or not plan.is_worth_it:
            return
        try:
            compacted = await self._in_thread(self._compaction(plan))
        except CompactionStopped:
            return
        except CorruptLog as error:
            partition.log.suspect_segment(base_offset_of(error.path))
            raise
        clean_to = await in_slices(install_in_steps(partition.log, compacted))
        if clean_to is not None:
            offsets[partition.id] = clean_to
        await self._in_thread(partition.log.unlink_deleted)
        await self._in_thread(partition.log.list_segments)

    def _compaction(self, plan: Plan) -> Callable[[], Compacted]:
        """Return the work of a plan, for a thread; the records of a large one are read by a process."""
        config, stop = self._config(), self._stopping.is_set
        max_keys = config.integer("log.cleaner.dedupe.buffer.size") // BYTES_PER_KEY
        rate = config.number("log.cleaner.io.max.bytes.per.second")
        process = self._running_cleaner_process() if plan.size > _SMALL_PLAN_BYTES else None
        if process is None:
            return partial(run_compaction, plan, max_keys=max_keys, stop=stop, throttle=Throttle(rate))
        return partial(process.run_compaction, plan, max_keys=max_keys, bytes_per_second=rate, stop=stop)

    def _running_cleaner_process(self) -> CleanerProcess | None:
        """Return the process that compacts, started if there is none; None if it cannot be started."""
        if self._cleaner_process is None or not self._cleaner_process.is_running:
            try:
                self._cleaner_process = CleanerProcess.start()
            except OSError as error:
                logger.warning("compacting in a thread, which delays requests: no process starts: %s", error)
                return None
        return self._cleaner_process

    async def _end_cleaner_process(self) -> None:
        process, self._cleaner_process = self._cleaner_process, None
        if process is not None:
            await self._in_thread(process.close)


@contextmanager
def logged(what: str, partition: Partition, partitions: Mapping[TopicPartition, Partition]) -> Iterator[None]:
    """Log the failure of one partition's log, so that the others have their turn.

    The failure of a partition that is no longer in `partitions` is not logged: it was deleted meanwhile.
    """
    try:
        yield
    except (OSError, KafkaError, StorageError) as error:
        if partitions.get(partition.id) is partition:
            logger.error("%s of %s failed: %s", what, partition.id, error)  # noqa: TRY400  a line each time is enough
