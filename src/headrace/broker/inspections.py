"""Batches whose records are read before they are appended: read in threads, appended in order.

The first batch of a partition that has to wait for a thread starts the partition's line. Every later batch of
that partition joins the line until it is empty, so that batches keep their order. A batch stays in line when
its client disconnects, as a batch that need not wait would have been appended. Whether this broker leads the
partition is checked when the batch is appended, and not only when it comes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, ParamSpec, TypeVar

from headrace.broker.errors import NotLeader, TimedOut
from headrace.broker.partition import Partition
from headrace.broker.schemas import Schemas
from headrace.protocol.errors import KafkaError
from headrace.protocol.fields import Buffer
from headrace.storage.inspection import PreparedBatch, is_quick, prepare, reads_records

MAX_WAITING_BYTES: Final = 256 * 1024 * 1024  # of batches in all lines
OVERHEAD_BYTES: Final = 1024  # of each of them
THREADS: Final = 2  # the codecs release the GIL; two loops over records would only take turns with a third

T = TypeVar("T")
P = ParamSpec("P")
Outcome = PreparedBatch | KafkaError


class _Waiting(Generic[T]):
    """A batch in line, what to do with it when it is its turn, and what comes of that."""

    __slots__ = ("_append", "data", "done")

    def __init__(self, data: bytearray, append: Callable[[Outcome], T]) -> None:
        self.data = data
        self.done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._append = append

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return len(self.data) + OVERHEAD_BYTES

    def append(self, outcome: Outcome) -> None:
        """Append the batch, or refuse it; a failure of ours is raised where the reply is waited for."""
        try:
            result = self._append(outcome)
        except Exception as error:  # noqa: BLE001  see above
            self.fail(error)
        else:
            if not self.done.done():  # else the client has gone
                self.done.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class InspectionThreads:
    """The threads that read records of clients."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._stopping = False

    async def run(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run `work`, which reads records that clients have sent, in one of the threads."""
        assert not named, named
        if self._stopping:
            raise NotLeader("this broker is stopping")
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="inspection")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def stop(self) -> None:
        """Accept no more work and wait for the threads, which are done within seconds."""
        self._stopping = True
        if self._threads is not None:
            await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)


class Inspections:
    """The lines of one broker's partitions."""

    def __init__(self, schemas: Schemas, threads: InspectionThreads | None = None) -> None:
        self._schemas = schemas
        self.threads = threads or InspectionThreads()
        self._lines: dict[Partition, deque[_Waiting[Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting_bytes = 0
        self._stopping = False

    def must_wait(self, partition: Partition, data: Buffer) -> bool:
        """Whether the batch has to be put in line, because of its records or of those before it."""
        config = partition.log.config
        if len(data) > config.max_message_bytes:  # it is refused at once, and need not be copied
            return False
        if self._lines and partition in self._lines:
            return True
        if partition.id.topic in self._schemas.rules:
            return True
        return config.reads_records and reads_records(data, config) and not is_quick(data)

    def put_in_line(
        self, partition: Partition, data: Buffer, append: Callable[[Outcome], T]
    ) -> "asyncio.Future[T]":
        """Have `append` called with the prepared batch, or why it is refused, when all before it are done.

        `data` is copied. TimedOut, which clients retry, if too many bytes are waiting.
        """
        if self._stopping:
            raise NotLeader(f"{partition.id}: this broker is stopping")
        waiting = _Waiting(bytearray(data), append)
        if self._waiting_bytes + waiting.cost > MAX_WAITING_BYTES:
            raise TimedOut(f"{self._waiting_bytes} bytes are waiting for their records to be checked")
        self._waiting_bytes += waiting.cost
        line = self._lines.setdefault(partition, deque())
        line.append(waiting)
        if len(line) == 1:
            task = asyncio.get_running_loop().create_task(self._work_off(partition, line))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return waiting.done

    async def _work_off(self, partition: Partition, line: deque[_Waiting[Any]]) -> None:
        try:
            while line:
                try:
                    line[0].append(await self._prepared(partition, line[0].data))
                except Exception as error:  # noqa: BLE001  it is raised where the reply is waited for
                    line[0].fail(error)
                self._leave(line)
        finally:  # it was cancelled, unless the line is empty
            del self._lines[partition]
            while line:
                line[0].append(NotLeader(f"{partition.id}: this broker is stopping"))
                self._leave(line)

    def _leave(self, line: deque[_Waiting[Any]]) -> None:
        self._waiting_bytes -= line.popleft().cost

    async def _prepared(self, partition: Partition, data: bytearray) -> Outcome:
        """The batch ready to be appended under the configuration that the log has when this returns."""
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
        """Refuse what is in line and wait for the threads, which are done within seconds."""
        self._stopping = True
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.threads.stop()


def _without_frames(error: KafkaError) -> KafkaError:
    """The error without its traceback, whose frames hold the unpacked records in memory."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error
