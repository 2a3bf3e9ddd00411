"""Writing records: `headrace.Producer`.

with Producer("127.0.0.1:9092", value=JSON) as producer:
    producer.send("orders", {"item": "tea"}, key="alice")

librdkafka batches, compresses and retries in threads of its own. The end of the block waits until all records
are acknowledged, and raises DeliveryFailed if one is not.

A call from C to Python for every acknowledged record costs a quarter of the throughput. So librdkafka reports
only failures, unless the producer gives receipts. As librdkafka reports each record exactly once, a record
that was sent, has not failed and does not wait was acknowledged.
"""

import itertools
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.consumer.consumer import Consumer
from headrace.client.errors import BadSetting, ClientError
from headrace.client.hints import Hint, note_failure
from headrace.client.librdkafka_errors import translate
from headrace.client.producer.arguments import Headers, check_many, header_list, time_of
from headrace.client.producer.delivery import Counts, Ledger, Receipt, refusal
from headrace.client.producer.flight import Flight, call_after_fork, close_client, refuse_after_fork
from headrace.client.producer.gate import Gate, Produce
from headrace.client.producer.partitioning import ANY, Partitioner, Preparation
from headrace.client.producer.transactions import TIMEOUT_MS, Transactions, in_transaction
from headrace.client.settings import (
    Bootstrap,
    Settings,
    bootstrap_of,
    build,
    check_connection,
    check_functions,
    check_seconds,
    delivery_timeout_ms,
    gather,
    said,
    set_defaults,
)

POLL_EVERY: Final = 1023  # a mask: librdkafka is polled after 1,024 records
LOOK_EVERY: Final = 63  # a mask: the clock is read after 64 records, and with receipts librdkafka is polled
MANY: Final = 128  # records that are counted together
TIMEOUT_S: Final = 30.0  # for metadata requests

DELIVERY_TIMEOUT_MS: Final = 120_000

# What librdkafka raises for a record that it does not accept.
_NOT_TAKEN: Final = (BufferError, KafkaException, TypeError, ValueError, OverflowError)


class Producer:
    """Sends records to any topic. Threads may share it."""

    if not TYPE_CHECKING:
        produce = Hint("send(topic, value, key)")

    def __init__(
        self,
        bootstrap: Bootstrap = None,
        *,
        key: object = None,
        value: object = None,
        acks: int | str | None = None,
        compression: str | None = None,
        partitioner: str | Partitioner | None = None,
        transactional_id: str | None = None,
        registry: object = None,
        receipts: bool = False,
        on_failure: Callable[[ClientError], None] | None = None,
        settings: Settings | None = None,
        **named: object,
    ) -> None:
        """`key` and `value` are formats (BYTES, STRING, JSON, Avro(...), a function); BYTES by default.

        `acks` is "all", 1 or 0; with "all" the producer is idempotent: each record is written once, and in
        order. With 0 the broker does not answer, and a sent record counts as acknowledged even if the broker
        refuses it. `post` needs `receipts`. `on_failure` is called with the error of each failed record, in
        the thread that sends or flushes. With a `transactional_id` records are sent within `transaction()`;
        earlier producers with this id are fenced. Other keywords are librdkafka's settings: `linger_ms=20`.
        """
        check_functions(on_failure=on_failure)
        by_function = partitioner if callable(partitioner) else None
        named |= said(
            acks=acks,
            compression_type=compression,
            partitioner=None if by_function else partitioner,
            transactional_id=transactional_id,
        )
        given = gather(bootstrap, defaults={"acks": "all"}, settings=settings, named=named)
        if (transactional_id := given.get("transactional.id")) is not None:
            set_defaults(given, {"transaction.timeout.ms": TIMEOUT_MS})
        # librdkafka refuses a delivery timeout that is longer than the transaction's.
        set_defaults(given, {"delivery.timeout.ms": given.get("transaction.timeout.ms", DELIVERY_TIMEOUT_MS)})
        in_turn = by_function is None and "partitioner" not in given
        # As in Java's client: all clients agree on the partition of a key.
        given.setdefault("partitioner", "murmur2_random")
        acks = given.get("acks", given.get("request.required.acks"))
        given.setdefault("enable.idempotence", str(acks) in {"all", "-1"})
        self.bootstrap = bootstrap_of(given)
        self._ledger = Ledger(self.bootstrap, on_failure, delivery_timeout_ms(given))
        self.count, self.why = self._ledger.report, self._ledger.why
        self._receipts = receipts
        given |= {"on_delivery": self._ledger.report, "delivery.report.only.error": not receipts}
        self._records = Preparation(
            key, value, registry, by_function, self._count_partitions, in_turn=in_turn
        )
        client = build(confluent_kafka.Producer, given)
        self._prepare = self._records.prepare if self._records.needed else None
        self._adds_headers = self._records.adds_headers
        self._turns = self._records.turns
        self._produce: Produce
        gate = Gate(client.produce, lambda produce: setattr(self, "_produce", produce))
        flight = Flight(client, self._ledger, gate, receipts=receipts)
        self._transactions: Transactions | None = None
        try:
            check_connection(given)
            if transactional_id is not None:
                timeout_s = int(given["transaction.timeout.ms"]) / 1000
                self._transactions = Transactions(
                    flight, self._ledger, gate, transactional_id, self.bootstrap, timeout_s
                )
        except BaseException:
            close_client(client)
            raise
        self._flight = flight
        self._count = flight.sent.add
        call_after_fork(self._forked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        with note_failure(error):
            self.close()

    def __del__(self) -> None:
        if waiting := self._flight.left_behind if hasattr(self, "_flight") else 0:
            warnings.warn(
                f"a producer with up to {waiting} records in flight was not closed", ResourceWarning, 2
            )

    def send(  # noqa: PLR0917  arguments that must be named would cost 20 ns each
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int = 0,
    ) -> None:
        """Queue a record; waits only while the buffer is full. `flush` raises if it fails."""
        if self._prepare is not None:
            headers = header_list(headers or (), topic) if self._adds_headers else headers
            value, key, partition = self._prepare(topic, value, key, headers, partition)
        try:
            if partition is None:
                partition = next(self._turns[topic]) if key is None else ANY
            if headers is None and not timestamp_ms:  # most records; fewer arguments are faster
                self._produce(topic, value, key, partition)
            else:
                headers, timestamp_ms = header_list(headers or (), topic), time_of(timestamp_ms)
                self._produce(topic, value, key, partition, None, None, timestamp_ms, headers)
        except _NOT_TAKEN as error:
            self._insist(error, topic, value, key, partition, None, timestamp_ms, headers)
        if not (count := self._count()) & LOOK_EVERY:
            self._look(count & POLL_EVERY)

    def send_all(self, topic: str, values: Iterable[Any]) -> int:
        """Send many values without keys, and return how many. It costs less than a `send` for each.

        If one is refused, the values before it are in flight.
        """
        check_many(topic, values)
        sent = 0
        if self._prepare is not None:
            for value in values:
                self.send(topic, value)
                sent += 1
            return sent
        turn = self._turns[topic]
        if topic not in self._turns:  # the broker may create the topic for the first record
            turn = itertools.repeat(ANY)
        values = iter(values)
        while (some := self._send_some(topic, itertools.islice(values, MANY), turn)) == MANY:
            sent += MANY
        return sent + some

    def _send_some(self, topic: str, values: Iterable[Any], turn: Iterable[int]) -> int:
        sent, produce = 0, self._produce
        try:
            for value, partition in zip(values, turn, strict=False):
                try:
                    produce(topic, value, None, partition)
                except _NOT_TAKEN as error:
                    self._insist(error, topic, value, None, partition, None, 0, None)
                sent += 1
        finally:
            self._flight.sent.add_many(sent)
        return sent

    def post(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int = 0,
        on_delivery: Callable[[Receipt], None] | None = None,
    ) -> Receipt:
        """Send a record and return its receipt: `receipt.result()` waits for partition and offset.

        `on_delivery` is called with the receipt after the report, by the thread that polls next.
        """
        if on_delivery is not None:
            check_functions(on_delivery=on_delivery)
        receipt = Receipt(self._ledger, self._flight.client.poll, on_delivery)
        while not self.offer(receipt.settle, topic, value, key, headers, partition, timestamp_ms):
            self._flight.wait_for_room()
        return receipt

    def offer(  # noqa: PLR0917
        self,
        settle: Callable[[KafkaError | None, Any], None],
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int,
    ) -> bool:
        """Queue a record whose report goes to `settle`; returns False if the buffer is full."""
        if not self._receipts:
            raise ClientError("this producer gives no receipts: make it with receipts=True")
        if headers is not None or self._adds_headers:
            headers = header_list(headers or (), topic)
        timestamp_ms = time_of(timestamp_ms)
        if self._prepare is not None:
            value, key, partition = self._prepare(topic, value, key, headers, partition)
        try:
            if partition is None:
                partition = next(self._turns[topic]) if key is None else ANY
            self._produce(topic, value, key, partition, settle, None, timestamp_ms, headers)
        except BufferError:
            return False
        except _NOT_TAKEN as error:
            self._refuse(error, topic, value, key, partition)
        if not self._count() & LOOK_EVERY:
            self._look()
        return True

    def flush(self, timeout_s: float | None = None) -> Counts:
        """Wait until every record sent so far is acknowledged; DeliveryFailed if one is not.

        Without a timeout it waits as long as librdkafka tries: two minutes (`delivery_timeout_ms`). Threads
        that keep sending have to wait towards the end: librdkafka does not say which records are queued.
        """
        check_seconds(timeout_s=timeout_s)
        if not self._receipts:  # with receipts, `may_block` relies on the known partitions
            self._records.look_again()
        return self._flight.flush(timeout_s)

    def transaction(self, offsets_of: Consumer[Any, Any] | None = None) -> AbstractContextManager[None]:
        """Return a block whose records are committed together at its end, or aborted if it raises.

        With `offsets_of` the offsets of all records that this consumer has handed out are committed with
        them; after an abort the consumer hands these records out again.
        """
        if offsets_of is not None and not isinstance(offsets_of, Consumer):
            raise BadSetting(f"offsets_of is a Consumer, not {offsets_of!r:.80}")
        return in_transaction(self.transactions, offsets_of)

    @property
    def transactions(self) -> Transactions:
        """Return the transactions of this producer; ClientError if it has no transactional.id."""
        if self._transactions is None:
            raise ClientError("this producer has no transactions: make it with transactional_id=NAME")
        return self._transactions

    @property
    def counts(self) -> Counts:
        """Return how many records were sent, acknowledged, have failed, and are waiting.

        Between two flushes, records that were acknowledged just now may still count as waiting.
        """
        return self._flight.counts

    def poll(self, timeout_s: float = 0) -> None:
        """Poll librdkafka, which calls the callbacks of reported records; sending and flushing do so, too."""
        check_seconds(timeout_s=timeout_s)
        self._flight.poll(timeout_s)

    def serve(self, timeout_s: float) -> None:
        """Poll librdkafka; what callbacks raise is raised by the next send or flush."""
        self._flight.serve(timeout_s)

    def close(self, timeout_s: float | None = None) -> None:
        """Flush and close; may be called again. Records that are not acknowledged in time are dropped."""
        check_seconds(timeout_s=timeout_s)
        if self._flight.stop():
            try:
                self._flight.end(timeout_s)
            finally:
                self._records.close()

    def may_block(self, topic: str, key: object, partition: int | None) -> bool:
        """Whether sending such a record may need a request to a broker or a schema registry."""
        return self._records.may_block(topic, key, partition)

    def _insist(self, error: Exception, topic: str, value: Any, key: Any, *rest: Any) -> None:
        """Wait for room in the buffer, or raise what is wrong with the record."""
        while isinstance(error, BufferError):
            self._flight.wait_for_room()
            try:
                self._produce(topic, value, key, rest[0], rest[1], None, *rest[2:])
            except _NOT_TAKEN as again:
                error = again
            else:
                return
        self._refuse(error, topic, value, key, rest[0])

    def _refuse(
        self, error: Exception, topic: str, value: object, key: object, partition: object
    ) -> NoReturn:
        self._turns.clear()  # the number of partitions may have changed
        if self._transactions is not None and isinstance(error, KafkaException):
            self._transactions.raise_if_failed(error)
        why = refusal(error, topic, value, key, partition, self.bootstrap)
        raise why from (None if why is error else error)

    def _forked(self) -> None:
        if self._flight.leave():
            self._produce = refuse_after_fork

    def _look(self, until_poll: int = 0) -> None:
        if not until_poll:
            self.poll(0)
        self._records.look_again()

    def _count_partitions(self, topic: str) -> int:
        try:
            found = self._flight.client.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        except KafkaException as error:
            raise translate(error, topic, self.bootstrap) from error
        return len(found.partitions)
