"""What a broker does by the clock: retention, compaction, flushes, checkpoints, idle connections."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from headrace.broker.partition import Partition
from headrace.broker.services import BrokerServices
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.storage.cleaner import CompactionStopped, Throttle, install, plan_compaction, run_compaction
from headrace.storage.compaction_filter import BYTES_PER_KEY
from headrace.storage.errors import StorageError
from headrace.storage.retention import enforce_retention

T = TypeVar("T")
_FLUSH_INTERVAL_S = 1.0
_IDLE_INTERVAL_S = 5.0
_QUIET_INTERVAL_S = 1.0

logger = logging.getLogger(__name__)


class Housekeeping:
    """Tasks that run from `start` to `stop`. One that fails is logged and comes round again."""

    def __init__(self, broker: BrokerServices) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []
        self._running: set[asyncio.Future[Any]] = set()
        self._stopping = threading.Event()
        self._backoff_changed = asyncio.Event()
        self._waited_s = 0.0  # by the cleaner, for its next turn

    def start(self) -> None:
        config = self._broker.config
        jobs: list[tuple[Callable[[], Awaitable[None]], float]] = [
            (self._flush, _FLUSH_INTERVAL_S),
            (self._close_idle, _IDLE_INTERVAL_S),
            (self._rest_quiet, _QUIET_INTERVAL_S),
            (self._retain, config.integer("log.retention.check.interval.ms") / 1000),
            (self._watch_followers, config.integer("replica.lag.time.max.ms") / 2000),
            (self._prefer_leaders, config.integer("leader.imbalance.check.interval.seconds")),
            (self._expire_offsets, config.integer("offsets.retention.check.interval.ms") / 1000),
            (self._checkpoint, config.integer("replica.high.watermark.checkpoint.interval.ms") / 1000),
        ]
        self._tasks = [asyncio.create_task(self._repeat(job, interval)) for job, interval in jobs]
        if config.flag("log.cleaner.enable"):
            self._tasks.append(asyncio.create_task(self._compact_by_turns()))

    def use_config(self) -> None:
        """The broker's settings have changed: the cleaner waits for as long as they say from now on."""
        if self._cleaner_backoff_s != self._waited_s:
            self._backoff_changed.set()

    @property
    def _cleaner_backoff_s(self) -> float:
        return max(0.1, self._broker.config.integer("log.cleaner.backoff.ms") / 1000)

    async def _compact_by_turns(self) -> None:
        """Wait for log.cleaner.backoff.ms and compact, for ever; another backoff begins the wait anew."""
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
        """Wait until nothing of it runs any more, in any thread."""
        await asyncio.gather(*self._tasks, *self._running, return_exceptions=True)

    async def _repeat(self, job: Callable[[], Awaitable[None]], interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            await self._try(job)

    async def _try(self, job: Callable[[], Awaitable[None]]) -> None:
        try:
            await job()
        except Exception:  # a job that ended here would never be missed
            logger.exception("%s failed and will be tried again", job.__name__)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread; `stopped` waits for it even if whoever waits here is cancelled."""
        running = asyncio.ensure_future(asyncio.to_thread(work))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    def _online(self) -> list[Partition]:
        return [part for part in self._broker.partitions.values() if part.log.offline is None]

    async def _flush(self) -> None:
        for partition in self._online():
            with logged("flush", partition, self._broker.partitions):
                if partition.log.flush_is_due:
                    await self._in_thread(partition.log.flush)
                elif partition.log.has_unflushed_segments:
                    await self._in_thread(partition.log.flush_closed)

    async def _rest_quiet(self) -> None:
        self._broker.connections.rest_quiet()

    async def _close_idle(self) -> None:
        self._broker.connections.close_idle()

    async def _retain(self) -> None:
        for partition in self._online():
            with logged("retention", partition, self._broker.partitions):
                removed = enforce_retention(partition.log, high_watermark=partition.high_watermark)
                if removed:
                    logger.info("%s: %d old segments removed", partition.id, removed)
                log = partition.log
                log.producers.remove_expired(log.now_ms() - log.config.producer_id_expiration_ms)
                if log.has_deleted_files:
                    await self._in_thread(log.unlink_deleted)
            await asyncio.sleep(0)  # requests come first

    async def _watch_followers(self) -> None:
        self._broker.replicas.isr_changes.look_at_all()

    async def _prefer_leaders(self) -> None:
        config, controller = self._broker.config, self._broker.controller
        if controller is not None and config.flag("auto.leader.rebalance.enable"):
            await controller.balance(config.integer("leader.imbalance.per.broker.percentage"))

    async def _expire_offsets(self) -> None:
        self._broker.groups.expire_offsets()

    async def _checkpoint(self) -> None:
        logs = self._broker.logs
        logs.high_watermarks = {part.id: part.high_watermark for part in self._broker.partitions.values()}
        await self._in_thread(logs.prepare_checkpoint())

    async def compact(self) -> None:
        """Compact every log that is worth it, unless log.cleaner.threads is 0."""
        if self._broker.config.integer("log.cleaner.threads") == 0:
            return
        for partition in self._online():
            if partition.log.config.compact:
                with logged("compaction", partition, self._broker.partitions):
                    await self._compact_one(partition)

    async def _compact_one(self, partition: Partition) -> None:
        config, offsets = self._broker.config, self._broker.logs.cleaner_offsets
        plan = plan_compaction(
            partition.log,
            first_dirty_offset=offsets.get(partition.id, 0),
            up_to_offset=partition.log.last_stable_offset(partition.high_watermark),
        )
        if plan is None or not plan.is_worth_it:
            return
        try:
            compacted = await self._in_thread(
                partial(
                    run_compaction,
                    plan,
                    max_keys=config.integer("log.cleaner.dedupe.buffer.size") // BYTES_PER_KEY,
                    stop=self._stopping.is_set,
                    throttle=Throttle(config.number("log.cleaner.io.max.bytes.per.second")),
                )
            )
        except CompactionStopped:
            return
        clean_to = install(partition.log, compacted)
        if clean_to is not None:
            offsets[partition.id] = clean_to
        await self._in_thread(partition.log.unlink_deleted)


@contextmanager
def logged(what: str, partition: Partition, partitions: Mapping[TopicPartition, Partition]) -> Iterator[None]:
    """One log that cannot be seen to must not keep the others waiting.

    Nobody is told of one that is not among `partitions` any more: it was dropped while it was seen to.
    """
    try:
        yield
    except (OSError, KafkaError, StorageError) as error:
        if partitions.get(partition.id) is partition:
            logger.error("%s of %s failed: %s", what, partition.id, error)  # noqa: TRY400  a line each time is enough
