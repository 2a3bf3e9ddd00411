"""The delivery of records: receipts, counts, and the failures that `flush` raises."""

import itertools
import time
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from headrace.client import errors
from headrace.client.librdkafka_errors import translate
from headrace.client.producer.arguments import check_partition
from headrace.client.settings import check_seconds

REMEMBERED: Final = 5  # failures in full; the others are only counted
KINDS: Final = 100  # of failures that are counted separately
POLL_S: Final = 0.1


class Delivered(NamedTuple):
    """The position of a record; with acks=0 its offset is unknown."""

    topic: str
    partition: int
    offset: int | None
    timestamp_ms: int | None


class Counts(NamedTuple):
    """sent = acknowledged + failed + waiting."""

    sent: int
    acknowledged: int
    failed: int
    waiting: int


class Transaction:
    """The outcome of one transaction, for the receipts of its records."""

    aborted = False


class Receipt:
    """The receipt of one record: its position once it is acknowledged, or its error."""

    __slots__ = ("_callback", "_error", "_ledger", "_message", "_poll", "_transaction")

    def __init__(
        self,
        ledger: "Ledger",
        poll: Callable[[float], object],
        callback: "Callable[[Receipt], None] | None" = None,
    ) -> None:
        self._ledger = ledger
        self._poll = poll
        self._callback = callback
        self._message: Any = None
        self._error: KafkaError | None = None
        self._transaction = ledger.transaction

    def __repr__(self) -> str:
        if self._message is None:
            return "Receipt(in flight)"
        return f"Receipt({self.error or delivered(self._message)})"

    @property
    def done(self) -> bool:
        """Whether the record is acknowledged or has failed; polls librdkafka."""
        if self._message is None:
            self._poll(0)
        return self._message is not None

    @property
    def error(self) -> errors.ClientError | None:
        """Return why the record was not written; None if it is acknowledged, or still in flight.

        A record that is acknowledged gets an error later if its transaction is aborted.
        """
        if self._error is not None:
            return self._ledger.why(self._error, self._message)
        if self._message is not None and self._transaction is not None and self._transaction.aborted:
            return _aborted(self._message)
        return None

    def result(self, timeout_s: float | None = None) -> Delivered:
        """Wait for the acknowledgement; raises its error, or TimeoutError if it is still in flight."""
        check_seconds(timeout_s=timeout_s)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.done:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"no acknowledgement within {timeout_s} s; the record is still in flight")
            self._poll(POLL_S)
        if self.error is not None:
            raise self.error
        return delivered(self._message)

    def settle(self, error: KafkaError | None, message: Any) -> None:
        """Note librdkafka's report, in the thread that polls."""
        if error is None:
            self._ledger.acknowledge()
        else:
            self._ledger.report(error, message)
            self._error = error
        self._message = message  # this makes the receipt done
        if self._callback is not None:
            self._ledger.call(self._callback, self)


class Tally:
    """A counter for many threads: `add` is atomic, as one call in C, and `+= 1` is not."""

    def __init__(self) -> None:
        count = itertools.count(1)
        self.add = count.__next__
        self._more = 0
        self._looks = 0  # reads of the counter, each of which increments it
        self._lock = Lock()

    def add_many(self, number: int) -> None:
        with self._lock:
            self._more += number

    @property
    def total(self) -> int:
        with self._lock:
            self._looks += 1
            return self.add() - self._looks + self._more


class Ledger:
    """Counts of failed records by error, and of acknowledged ones if each record is reported.

    Threads may share it: a report comes from whichever of them polls.
    """

    def __init__(
        self,
        bootstrap: str,
        on_failure: Callable[[errors.ClientError], None] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """`timeout_ms` is the delivery timeout, for the message about an unacknowledged record."""
        self.failed = 0
        self.transaction: Transaction | None = None  # the last one of a transactional producer
        self._timeout_ms = timeout_ms
        self._acknowledged = Tally()  # counted only where successes are reported too
        self.acknowledge = self._acknowledged.add
        self._told = 0  # failures that a flush has raised
        self._kinds: Counter[str] = Counter()
        self._first: list[errors.ClientError] = []
        self._bootstrap = bootstrap
        self._on_failure = on_failure
        self._raised: BaseException | None = None
        self._lock = Lock()

    def report(self, error: KafkaError | None, message: Any) -> None:
        """Note librdkafka's report about one record."""
        if error is None:
            self.acknowledge()
            return
        self._fail(error, self.why(error, message))

    def lost(self, error: KafkaError) -> None:
        """Note a failure that librdkafka does not report."""
        self._fail(error, translate(error, "the producer", self._bootstrap, is_topic=False))

    def _fail(self, error: KafkaError, why: errors.ClientError) -> None:
        with self._lock:
            self.failed += 1
            if self.transaction is not None and error.code() in _PURGED:
                self._told += 1  # the transaction has failed for another reason, which its block raises
                return
            kind = str(error.name()) if len(self._kinds) < KINDS else "others"
            self._kinds[kind] += 1
            if len(self._first) < REMEMBERED:
                self._first.append(why)
        if self._on_failure is not None:
            self.call(self._on_failure, why)

    def call(self, function: Callable[[Any], object], told: object) -> None:
        """Call the user's callback within librdkafka, and keep what it raises: librdkafka would lose it."""
        try:
            function(told)
        except BaseException as error:  # noqa: BLE001  the next send, poll or flush raises it
            self._raised = self._raised or error

    def raise_what_callbacks_raised(self, *, at_once: bool = True) -> None:
        """Raise what callbacks raised; if not `at_once`, only KeyboardInterrupt and the like."""
        if self._raised is None or (isinstance(self._raised, Exception) and not at_once):
            return
        raised, self._raised = self._raised, None
        raise raised

    def why(self, error: KafkaError, message: Any) -> errors.ClientError:
        if self.transaction is not None and error.code() in _PURGED:
            return _aborted(message)
        return translate(error, str(message.topic()), self._bootstrap, timeout_ms=self._timeout_ms)

    @property
    def acknowledged(self) -> int:
        return self._acknowledged.total

    def check(self, counts: Counts) -> None:
        """Raise DeliveryFailed if not all records are acknowledged, or what callbacks raised."""
        failed = self.failure(counts)
        if failed is not None:
            if self._raised is not None:
                failed.add_note(f"and besides, a callback has raised {self._raised!r}")
            raise failed
        self.raise_what_callbacks_raised()

    def failure(self, counts: Counts) -> errors.DeliveryFailed | None:
        """Return DeliveryFailed if not all records are acknowledged; each failure is returned once."""
        with self._lock:
            new, self._told = self.failed - self._told, self.failed
            kinds, first = self._kinds, self._first
            self._kinds, self._first = Counter(), []
        if not new and not counts.waiting and counts.acknowledged + counts.failed >= counts.sent:
            return None
        return errors.DeliveryFailed(
            failed=new,
            waiting=counts.waiting,
            missing=counts.sent - counts.acknowledged - counts.failed - counts.waiting,
            sent=counts.sent,
            kinds=dict(kinds.most_common()),
            errors=tuple(first),
        )


def delivered(message: Any) -> Delivered:
    kind, timestamp_ms = message.timestamp()
    offset = message.offset()
    known = offset is not None and offset >= 0
    return Delivered(
        message.topic(), message.partition(), offset if known else None, timestamp_ms if kind else None
    )


_PURGED: Final = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}  # noqa: SLF001


def _aborted(message: Any) -> errors.TransactionAborted:
    return errors.TransactionAborted(f"{message.topic()}: the transaction of the record is aborted")


_TAKEN: Final = (bytes, str, type(None))


def refusal(  # noqa: PLR0917
    error: Exception, topic: str, value: object, key: object, partition: object, bootstrap: str
) -> Exception:
    """Return what is wrong with the record, or `error` itself if the record is valid."""
    if errors.why_no_topic(topic):
        return errors.NoSuchTopic(topic)
    if isinstance(error, KafkaException):
        if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
            return translate(error, topic, bootstrap)
        size = len(value or b"") + len(key or b"")  # type: ignore[arg-type]
        return errors.ClientError(
            f"a record of {size:,} bytes for topic {topic} is too large: "
            "raise message_max_bytes here and max.message.bytes of the topic"
        )
    for field, given in (("key", key), ("value", value)):
        if not isinstance(given, _TAKEN):
            why = f"{type(given).__name__} is not bytes"
            if isinstance(given, bytearray | memoryview):
                why += f", and may change before it is sent: give bytes({field})"
            else:
                why += f": give the producer a format, such as {field}=JSON"
            return errors.NotSerializable(topic, field, why)
    if isinstance(error, UnicodeError):
        said = error.args[1] if isinstance(error, UnicodeEncodeError) else None
        field = "value" if said == value else "key" if said == key else "headers"
        return errors.NotSerializable(topic, field, f"not UTF-8: {error}")
    try:
        check_partition(partition)
    except errors.BadSetting as bad:
        return bad
    return error
