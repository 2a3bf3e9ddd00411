"""Writing records from asyncio: `headrace.AsyncProducer`.

async with AsyncProducer("127.0.0.1:9092", value=JSON) as producer:
    await producer.send("orders", {"item": "tea"})

A thread polls librdkafka, and wakes the event loop once for all reports that arrive together.
(confluent_kafka's AIOProducer collects records in Python first, and takes no headers.)
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from threading import Event, Lock
from typing import Any, Final, Self

from confluent_kafka import KafkaError

from headrace.client.aio import Answer, AsyncFace, takes_arguments_of
from headrace.client.consumer.aio import AsyncConsumer
from headrace.client.errors import BadSetting, ClientError, Closed
from headrace.client.producer.arguments import Headers, check_many
from headrace.client.producer.delivery import Counts, Delivered, delivered
from headrace.client.producer.producer import Producer
from headrace.client.producer.transactions import in_transaction
from headrace.client.settings import check_seconds
from headrace.system.background import BackgroundThread

POLL_S: Final = 0.1


class AsyncProducer(AsyncFace[Producer]):
    """As `Producer`, with the same arguments. Use it in one event loop, with `async with`."""

    @takes_arguments_of(Producer)
    def __init__(self, make: "partial[Producer]") -> None:
        if "receipts" in make.keywords:
            raise BadSetting(
                "receipts= is for Producer: an AsyncProducer always gives them (`await post(...)`)"
            )
        self._make = partial(make, receipts=True)
        self._loop: asyncio.AbstractEventLoop
        self._reports: deque[tuple[asyncio.Future[Delivered], Delivered | ClientError]] = deque()
        self._woken = False  # whether the loop will handle the reports; several threads report
        self._lock = Lock()
        self._room = asyncio.Event()  # set when records have left the buffer
        self._ending = Event()
        self._poller = BackgroundThread(self._poll, name="headrace-producer", stop=self._ending.set)

    async def __aenter__(self) -> Self:
        if self._closing is not None:
            raise Closed("producer")
        self._loop = asyncio.get_running_loop()
        self._opened = await asyncio.to_thread(self._make)
        self._poller.start()
        return self

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int = 0,
    ) -> Delivered:
        """Send a record, and wait until it is acknowledged; a ClientError says why it is not."""
        posted = await self.post(
            topic, value, key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return await posted

    async def send_all(self, topic: str, values: Iterable[Any]) -> int:
        """Send many values without keys, wait until all are acknowledged, and return how many.

        Raise the error of the first record that failed; others may be in flight.
        """
        check_many(topic, values)
        sent, waiting = 0, deque[asyncio.Future[Delivered]]()  # no more than the buffer has room for
        for value in values:
            waiting.append(await self.post(topic, value))
            sent += 1
            while waiting and waiting[0].done():
                waiting.popleft().result()
        for each in waiting:
            await each
        return sent

    async def post(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int = 0,
    ) -> "asyncio.Future[Delivered]":
        """Queue a record, waiting only for room in the buffer; the future is its receipt.

        The future need not be awaited: `flush` and the end of the block raise the error of a failed record.
        """
        producer = self._here()
        future: asyncio.Future[Delivered] = self._loop.create_future()
        future.add_done_callback(_seen)
        offer = partial(
            producer.offer, partial(self._settle, future), topic, value, key, headers, partition, timestamp_ms
        )
        # A request to a broker or a registry must not block the event loop.
        ask = producer.may_block(topic, key, partition)
        while True:
            self._room.clear()
            if await asyncio.to_thread(offer) if ask else offer():
                return future
            await self._room.wait()

    async def flush(self, timeout_s: float | None = None) -> Counts:
        """Wait until every record posted so far is acknowledged; DeliveryFailed if one is not.

        Tasks that keep posting have to wait towards the end, as for a full buffer.
        """
        self._here()
        return await asyncio.to_thread(self._flush, timeout_s)

    @asynccontextmanager
    async def transaction(self, offsets_of: AsyncConsumer[Any, Any] | None = None) -> AsyncIterator[None]:
        """Commit all records of the block together at its end, or abort them if the block raises.

        With `offsets_of` the offsets of all records that this consumer has handed out are committed with
        them; after an abort the consumer hands these records out again.
        """
        transactions = self._here().transactions
        if offsets_of is not None and not isinstance(offsets_of, AsyncConsumer):
            raise BadSetting(f"offsets_of is an AsyncConsumer, not {offsets_of!r:.80}")
        consumer = None if offsets_of is None else offsets_of.in_its_thread()
        block = in_transaction(transactions, consumer)
        try:
            await self._to_the_end(block.__enter__)
            yield
        except BaseException as error:
            await self._to_the_end(partial(block.__exit__, type(error), error, error.__traceback__))
            raise
        await self._to_the_end(partial(block.__exit__, None, None, None))

    async def _to_the_end(self, function: Callable[[], Answer]) -> Answer:
        """Run a step of a transaction in a thread, and wait for its end even if the task is cancelled."""
        step = asyncio.ensure_future(asyncio.to_thread(function))
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            await asyncio.wait([step])
            raise
        finally:
            self._room.set()  # tasks that wait for the flush find the transaction ended

    @property
    def counts(self) -> Counts:
        """Return how many records were sent, acknowledged, have failed, and are waiting."""
        return self._client.counts

    async def close(self, timeout_s: float | None = None) -> None:
        """Flush, and close the producer. May be called again.

        Closing goes on if the waiting task is cancelled; another call waits for it.
        """
        producer = self._client
        check_seconds(timeout_s=timeout_s)
        if self._closing is None:
            thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-closing")
            self._closing = thread.submit(self._close, producer, timeout_s)
            thread.shutdown(wait=False)
        try:
            await self._closed(self._closing)
        finally:
            if self._loop is asyncio.get_running_loop():
                self._deliver()

    def _here(self) -> Producer:
        """Return the producer; ClientError unless it was opened in this event loop."""
        producer = self._client
        if self._loop is not asyncio.get_running_loop():
            raise ClientError(
                "an AsyncProducer belongs to the event loop that it was opened in: make another one"
            )
        return producer

    def _poll(self) -> None:
        while not self._ending.is_set():
            self._client.serve(POLL_S)

    def _close(self, producer: Producer, timeout_s: float | None) -> None:
        self._ending.set()
        self._poller.join()  # librdkafka must not be closed while the thread polls
        producer.close(timeout_s)

    def _flush(self, timeout_s: float | None) -> Counts:
        try:
            return self._client.flush(timeout_s)
        finally:
            self._wake(self._room.set)  # even if the waiting task was cancelled

    def _settle(self, future: "asyncio.Future[Delivered]", error: KafkaError | None, message: Any) -> None:
        self._client.count(error, message)
        if error is None:
            found: Delivered | ClientError = delivered(message)
        else:
            found = self._client.why(error, message)
        self._reports.append((future, found))
        with self._lock:
            wake, self._woken = not self._woken, True
        if wake:
            self._wake(self._deliver)

    def _wake(self, function: Callable[[], None]) -> None:
        """Call a function in the event loop, unless the loop is closed."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function)

    def _deliver(self) -> None:
        with self._lock:
            self._woken = False  # first: a report that comes later wakes the loop again
        self._room.set()
        while self._reports:
            future, found = self._reports.popleft()
            if future.done():  # the waiting task was cancelled
                continue
            if isinstance(found, ClientError):
                future.set_exception(found)
            else:
                future.set_result(found)


def _seen(future: "asyncio.Future[Delivered]") -> None:
    """Retrieve the exception, or asyncio would log it; `flush` raises it."""
    if not future.cancelled():
        future.exception()
