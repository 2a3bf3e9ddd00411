"""Batches whose records are read before the append: threads read them, and they are appended in order.

The first batch of a partition that has to wait for a thread starts the partition's queue. Every later batch
of that partition is queued until the queue is empty, so that batches keep their order. A batch stays queued
when its client disconnects, as a batch that need not wait would have been appended. Leadership of the
partition is checked when a batch arrives and again when it is appended.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, ParamSpec, TypeVar

from headrace.broker.errors import NotLeader, TimedOut
from headrace.broker.replicas.partition import Partition
from headrace.broker.schemas.validation import Schemas
from headrace.protocol.errors import KafkaError
from headrace.protocol.fields import Buffer
from headrace.storage.append.inspection import PreparedBatch, is_quick, prepare, reads_records

MAX_WAITING_BYTES: Final = 256 * 1024 * 1024  # of batches in all queues
OVERHEAD_BYTES: Final = 1024  # per batch
THREADS: Final = 2  # codecs release the GIL, but loops over records do not, so more threads would not help
_STOPPING: Final = "the broker is stopping (NOT_LEADER_OR_FOLLOWER)"

T = TypeVar("T")
P = ParamSpec("P")
Outcome = PreparedBatch | KafkaError


class _QueuedBatch(Generic[T]):
    """A batch in a queue, the function that appends it, and the future of the result."""

    __slots__ = ("_append", "data", "done")

    def __init__(self, data: bytearray, append: Callable[[Outcome], T]) -> None:
        self.data = data
        self.done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._append = append

    @property
    def cost(self) -> int:
        """The memory of the batch in bytes."""
        return len(self.data) + OVERHEAD_BYTES

    def append(self, outcome: Outcome) -> None:
        """Append or refuse the batch; an unexpected exception is raised by `done`."""
        try:
            result = self._append(outcome)
        except Exception as error:  # noqa: BLE001  see above
            self.fail(error)
        else:
            if not self.done.done():  # it is cancelled if the client has disconnected
                self.done.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class InspectionThreads:
    """The threads that read records."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._stopping = False

    async def run(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run `work`, which reads records, in one of the threads."""
        assert not named, named
        if self._stopping:
            raise NotLeader(_STOPPING)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="inspection")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def stop(self) -> None:
        """Accept no more work and wait for the threads, which finish within seconds."""
        self._stopping = True
        if self._threads is not None:
            await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)


class Inspections:
    """The queues of a broker's partitions."""

    def __init__(self, schemas: Schemas, threads: InspectionThreads | None = None) -> None:
        self._schemas = schemas
        self.threads = threads or InspectionThreads()
        self._queues: dict[Partition, deque[_QueuedBatch[Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._queued_bytes = 0
        self._stopping = False

    def must_wait(self, partition: Partition, data: Buffer) -> bool:
        """Return whether the batch has to be queued: its records must be read, or the queue is not empty."""
        config = partition.log.config
        if len(data) > config.max_message_bytes:  # the append refuses it, so it need not be copied
            return False
        if self._queues and partition in self._queues:
            return True
        if partition.id.topic in self._schemas.rules:
            return True
        return config.reads_records and reads_records(data, config) and not is_quick(data)

    def enqueue(
        self, partition: Partition, data: Buffer, append: Callable[[Outcome], T]
    ) -> "asyncio.Future[T]":
        """Queue the batch; `append` is called with the prepared batch or the error, in order.

        `data` is copied. Raise TimedOut, which is retriable, if too many bytes are queued.
        """
        if self._stopping:
            raise NotLeader(f"{partition.id}: {_STOPPING}")
        batch = _QueuedBatch(bytearray(data), append)
        if self._queued_bytes + batch.cost > MAX_WAITING_BYTES:
            raise TimedOut(
                f"{partition.id}: {self._queued_bytes} bytes of batches are queued for validation "
                "(REQUEST_TIMED_OUT)"
            )
        self._queued_bytes += batch.cost
        queue = self._queues.setdefault(partition, deque())
        queue.append(batch)
        if len(queue) == 1:
            task = asyncio.get_running_loop().create_task(self._process(partition, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return batch.done

    async def _process(self, partition: Partition, queue: deque[_QueuedBatch[Any]]) -> None:
        try:
            while queue:
                try:
                    queue[0].append(await self._prepared(partition, queue[0].data))
                except Exception as error:  # noqa: BLE001  `done` raises it
                    queue[0].fail(error)
                self._dequeue(queue)
        finally:  # the task was cancelled, unless the queue is empty
            del self._queues[partition]
            while queue:
                queue[0].append(NotLeader(f"{partition.id}: {_STOPPING}"))
                self._dequeue(queue)

    def _dequeue(self, queue: deque[_QueuedBatch[Any]]) -> None:
        self._queued_bytes -= queue.popleft().cost

    async def _prepared(self, partition: Partition, data: bytearray) -> Outcome:
        """Return the batch, prepared for the log's current configuration, or the error that refuses it."""
        try:
            while True:
                partition.ensure_leader()
                config = partition.log.config
                refusal = await self._schemas.refusal(partition.id.topic, data)
                if refusal is not None:
                    return _without_frames(refusal)
                prepared = await self.threads.run(prepare, data, config, partition.log.now_ms())
                if partition.log.config == config:
                    return prepared
        except KafkaError as error:
            return _without_frames(error)

    async def stop(self) -> None:
        """Refuse the queued batches and wait for the threads, which finish within seconds."""
        self._stopping = True
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.threads.stop()


def _without_frames(error: KafkaError) -> KafkaError:
    """Return the error without its traceback, whose frames would keep decompressed records in memory."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error
