"""The producer that all requests share.

One thread polls for delivery reports; any number of requests wait for theirs on the event loop.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.client.errors import ClientError, Unreachable
from headrace.client.librdkafka_errors import translate
from headrace.client.records.one_by_one import ANY_PARTITION, Record
from headrace.client.wire.connection_settings import ConnectionSettings, Target, settings_for
from headrace.system.background import BackgroundThread

DELIVERY_S: Final = 30.0  # after which a record has failed; an election takes less
QUEUED: Final = 100_000  # records in flight at a time
QUEUED_KBYTES: Final = 256 * 1024
_FULL_S: Final = 0.01  # between two attempts while the queue is full
_TURN: Final = 500  # records after which other requests have their turn on the event loop
_POLL_S: Final = 0.1
_SILENCE_MS: Final = 5000  # after which a broker counts as hung
_REFRESH_MS: Final = 5000  # between two refreshes of metadata


@dataclass(frozen=True, slots=True)
class Delivered:
    """Partition and offset of a record; a retry of an old record may be acknowledged without its offset."""

    partition: int
    offset: int | None
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a record was not acknowledged, and whether the error is retriable."""

    error: ClientError
    retriable: bool


Outcome = Delivered | Failed


class SharedProducer:
    """A producer that is created when it is first needed, and replaced after a fatal error."""

    def __init__(self, target: Callable[[], Target]) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._current: _PolledProducer | None = None

    async def send(self, topic: str, records: Sequence[Record]) -> list[Outcome]:
        return await self._producer().send(topic, records) if records else []

    def close(self) -> None:
        with self._lock:
            producer, self._current = self._current, None
        if producer is not None:
            producer.close()

    def _producer(self) -> "_PolledProducer":
        with self._lock:
            if self._current is not None and self._current.is_broken:
                self._current.retire()
                self._current = None
            if self._current is None:
                self._current = _PolledProducer(settings_for(self._target()))
            return self._current


class _PolledProducer:
    def __init__(self, connection: ConnectionSettings) -> None:
        self.is_broken = False  # by a fatal error, which an idempotent producer can have
        self._bootstrap = connection.bootstrap
        self._closed = threading.Event()
        self._producer = Producer(
            {
                **connection.librdkafka(),
                "log_level": 0,
                "client.id": "headrace-gateway",
                "enable.idempotence": True,
                "partitioner": "murmur2_random",  # as the Java client: a key has the same partition
                "linger.ms": 1,
                "delivery.timeout.ms": int(DELIVERY_S * 1000),
                # The connections of a hung broker stay open: without these, records wait for it, not for the
                # next leader.
                "socket.timeout.ms": _SILENCE_MS,
                "api.version.request.timeout.ms": _SILENCE_MS,
                "topic.metadata.refresh.interval.ms": _REFRESH_MS,
                "allow.auto.create.topics": False,  # or a metadata refresh would recreate a deleted topic
                "topic.metadata.propagation.max.ms": 5000,
                "message.max.bytes": 1_000_000_000,  # the topic's own limit applies
                "queue.buffering.max.messages": QUEUED,
                "queue.buffering.max.kbytes": QUEUED_KBYTES,
            }
        )
        self._thread = BackgroundThread(self._poll, name="gateway-producer", stop=self._closed.set)
        self._thread.start()

    async def send(self, topic: str, records: Sequence[Record]) -> list[Outcome]:
        waiting = _Waiting(len(records), topic, self._bootstrap)
        for number, record in enumerate(records):
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
            await self._put(topic, record, number, waiting)
        outcomes = await waiting.done
        self.is_broken |= waiting.fatal
        return outcomes

    async def _put(self, topic: str, record: Record, number: int, waiting: "_Waiting") -> None:
        """Queue a record as soon as there is room for it."""
        options: dict[str, Any] = {}
        if record.timestamp_ms is not None:
            options["timestamp"] = record.timestamp_ms
        deadline = asyncio.get_running_loop().time() + DELIVERY_S
        while True:
            try:
                self._producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=ANY_PARTITION if record.partition is None else record.partition,
                    on_delivery=partial(waiting.delivered, number),
                    **options,
                )
            except BufferError:
                if asyncio.get_running_loop().time() > deadline:
                    busy = Unreachable("the queue is full, and the brokers acknowledge no record")
                    waiting.settle(number, Failed(busy, retriable=True))
                    return
                await asyncio.sleep(_FULL_S)
            except KafkaException as error:
                waiting.fail(number, error.args[0], record.partition)
                return
            else:
                return

    def retire(self) -> None:
        self._closed.set()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._closed.is_set():
            self._producer.poll(_POLL_S)
        self._producer.flush(1)


class _Waiting:
    """The outcomes of one request's records, which the producer's thread reports."""

    def __init__(self, count: int, topic: str, bootstrap: str) -> None:
        self.fatal = False  # whether an error has broken the producer
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[list[Outcome]] = self._loop.create_future()
        self._topic = topic
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._outcomes: list[Outcome | None] = [None] * count
        self._left = count

    def delivered(self, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.fail(number, error, message.partition())
            return
        kind, timestamp_ms = message.timestamp()
        partition = message.partition()
        assert partition is not None, message
        self.settle(number, Delivered(partition, message.offset(), timestamp_ms if kind else None))

    def fail(self, number: int, error: KafkaError, partition: int | None) -> None:
        self.fatal |= error.fatal()
        why = translate(error, self._topic, self._bootstrap)
        if error.code() == KafkaError._UNKNOWN_PARTITION:  # noqa: SLF001  librdkafka's own error codes
            why = ClientError(f"{self._topic} has no partition {partition}")
        self.settle(number, Failed(why, retriable=error.retriable() or isinstance(why, Unreachable)))

    def settle(self, number: int, outcome: Outcome) -> None:
        with self._lock:
            self._outcomes[number] = outcome
            self._left -= 1
            if self._left:
                return

        def finish() -> None:
            if not self.done.done():  # unless the client has disconnected
                self.done.set_result([outcome for outcome in self._outcomes if outcome is not None])

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(finish)
