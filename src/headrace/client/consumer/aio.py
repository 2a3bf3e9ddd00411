"""Reading records from asyncio: `headrace.AsyncConsumer`.

async with AsyncConsumer("127.0.0.1:9092", "orders", group="billing") as consumer:
    async for message in consumer:
        print(message.value)

A `Consumer` runs in a thread of its own, one call after the other, and hands over many records at a time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, Self

from headrace.client.aio import Answer, AsyncFace, in_thread
from headrace.client.consumer.arguments import Start
from headrace.client.consumer.buffer import Record
from headrace.client.consumer.consumer import Consumer
from headrace.client.consumer.decoding import OnBad
from headrace.client.consumer.message import Batch, K, Message, V
from headrace.client.consumer.subscription import Listener
from headrace.client.errors import Closed, NotReadable
from headrace.client.serializers.formats import AnyFormat
from headrace.client.settings import Bootstrap, Settings
from headrace.protocol.ids import TopicPartition


class AsyncConsumer(AsyncFace[Consumer[K, V]], Generic[K, V]):
    """As `Consumer`, with the same arguments. Use it with `async with`, from one task at a time.

    Callbacks about partitions are plain functions, and are called in the consumer's thread.
    """

    def __init__(
        self,
        bootstrap: Bootstrap = None,
        topics: str | Sequence[str] = (),
        *,
        group: str | None = None,
        key: AnyFormat[K] | None = None,
        value: AnyFormat[V] | None = None,
        start: Start | None = None,
        auto_commit: bool | None = None,
        on_bad: OnBad = "raise",
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        registry: object = None,
        settings: Settings | None = None,
        **named: object,
    ) -> None:
        given: dict[str, Any] = {**locals(), **named}
        del given["self"], given["named"]
        self._make: Callable[[], Consumer[K, V]] = partial(Consumer, **given)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-consumer")

    async def __aenter__(self) -> Self:
        job = self._submit(self._make)
        try:
            self._opened = await asyncio.shield(asyncio.wrap_future(job))
        except asyncio.CancelledError:
            self._submit(_close_made, job)  # no other code would close it
            raise
        return self

    async def close(self) -> None:
        """Commit done records, and leave the group. May be called again, to wait for the same end."""
        if self._closing is None:
            self._closing = self._submit(self._client.close)
            self._thread.shutdown(wait=False)
        await self._closed(self._closing)

    def __aiter__(self) -> AsyncIterator[Message[K, V]]:
        return self.read()

    async def read(
        self, *, stop_at_end: bool = False, idle_s: float | None = None, limit_s: float | None = None
    ) -> AsyncIterator[Message[K, V]]:
        """Yield records one by one, until a limit as for `Consumer.read`."""
        fetches = self._client.fetches(stop_at_end=stop_at_end, idle_s=idle_s, limit_s=limit_s, beats=True)
        while (step := await self._step(fetches, self._client.decoded)) is not None:
            for message in self._client.handing_out(*step):
                if isinstance(message, NotReadable):
                    raise message
                if message is not None:
                    yield message

    async def batches(
        self,
        most: int = 500,
        *,
        stop_at_end: bool = False,
        idle_s: float | None = None,
        limit_s: float | None = None,
    ) -> AsyncIterator[Batch[K, V]]:
        """Yield up to `most` records at a time. A batch is done when the next one is requested."""
        fetches = self._client.fetches(
            most, stop_at_end=stop_at_end, idle_s=idle_s, limit_s=limit_s, beats=True
        )
        while (step := await self._step(fetches, self._client.decoded_batch)) is not None:
            for batch in self._client.handing_out_batch(*step):
                yield batch

    async def _step(
        self, fetches: Iterator[list[Record]], decode: Callable[[list[Record]], Answer]
    ) -> tuple[list[Record], Answer] | None:
        """Return the next records, raw and decoded; None at the end.

        The waiting task may be cancelled while the thread fetches. The fetched records are put back then:
        otherwise they would be committed without having been processed.
        """

        def fetch() -> tuple[list[Record], Answer] | None:
            batch = next(fetches, None)
            return None if batch is None else (batch, decode(batch))

        job = self._submit(fetch)
        fetched = asyncio.wrap_future(job)
        # This marks the exception as retrieved.
        fetched.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.shield(fetched)
        except asyncio.CancelledError:
            if self._closing is None:
                self._submit(self._put_back, job)  # runs after the fetch, and before anything else
            raise

    def _put_back(self, job: "Future[tuple[list[Record], Any] | None]") -> None:
        step = None if job.exception() is not None else job.result()
        if step is not None:
            self._client.put_back(step[0])

    subscribe = in_thread(Consumer.subscribe)
    assign = in_thread(Consumer.assign)
    seek = in_thread(Consumer.seek)
    pause = in_thread(Consumer.pause)
    resume = in_thread(Consumer.resume)
    committed = in_thread(Consumer.committed)
    lag = in_thread(Consumer.lag)

    async def commit(
        self, message: Message[K, V] | None = None, *, wait: bool = True
    ) -> dict[TopicPartition, int]:
        return await self._call(partial(self._client.commit, message, wait=wait))

    @property
    def assignment(self) -> list[TopicPartition]:
        return self._client.assignment

    def position(self) -> dict[TopicPartition, int]:
        return self._client.position()

    def in_its_thread(self) -> Any:
        """Return an object whose methods are those of the `Consumer`, called in its thread: they block."""
        return _InItsThread(self._client, self._submit)

    async def _call(self, function: Callable[[], Answer]) -> Answer:
        return await asyncio.wrap_future(self._submit(function))

    def _submit(self, function: Callable[..., Answer], *arguments: Any) -> "Future[Answer]":
        """Run a function in the consumer's thread, after those submitted before."""
        if self._closing is not None:
            raise Closed("consumer")
        return self._thread.submit(function, *arguments)


class _InItsThread:
    def __init__(self, consumer: object, submit: Callable[..., "Future[Any]"]) -> None:
        self._consumer, self._submit = consumer, submit

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._consumer, name)
        return lambda *arguments, **named: self._submit(partial(method, *arguments, **named)).result()


def _close_made(job: "Future[Consumer[Any, Any]]") -> None:
    if job.exception() is None:
        job.result().close()
