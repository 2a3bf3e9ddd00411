"""The transactions of a producer.

with Producer("127.0.0.1:9092", transactional_id="billing-1") as producer:
    with producer.transaction():
        producer.send("bills", b"...")
        producer.send("audit", b"...")

librdkafka has one transaction at a time. Outside of it the producer's gate refuses every record.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any, Final, NoReturn

from confluent_kafka import KafkaError, KafkaException

from headrace.client import errors
from headrace.client.consumer.consumer import Consumer
from headrace.client.consumer.offsets import TransactionOffsets
from headrace.client.librdkafka_errors import translate
from headrace.client.producer.delivery import Ledger, Transaction
from headrace.client.producer.flight import Flight
from headrace.client.producer.gate import Gate

TIMEOUT_MS: Final = 60_000  # the default of transaction.timeout.ms
BACKOFF_S: Final = 0.1  # after a retriable error, which librdkafka may return at once
CALL_S: Final = 1.0  # how long to call librdkafka at a time; Ctrl-C is noticed in between


class Transactions:
    """Begins, commits and aborts the transactions of one producer."""

    def __init__(  # noqa: PLR0917
        self,
        flight: Flight,
        ledger: Ledger,
        gate: Gate,
        transactional_id: str,
        bootstrap: str,
        timeout_s: float,
    ) -> None:
        """Fence earlier producers with this id, whose open transaction is aborted."""
        self._flight, self._ledger, self._gate = flight, ledger, gate
        self._id, self._bootstrap, self._timeout_s = transactional_id, bootstrap, timeout_s
        self._open = False
        self._lock = Lock()
        gate.use(_refuse_outside)
        self._insist(flight.client.init_transactions)

    def begin(self) -> None:
        """Begin a transaction; ClientError if one is open."""
        with self._lock:
            if self._open:
                raise errors.ClientError(
                    "this producer has an open transaction: transactions cannot be nested, and each thread "
                    "that needs its own transaction needs its own producer"
                )
            self._insist(lambda _timeout_s: self._flight.client.begin_transaction())
            self._ledger.transaction = Transaction()
            self._open = True
        self._gate.use(self._flight.client.produce)

    def commit(self, offsets: TransactionOffsets | None = None) -> None:
        """Flush, and commit the records together with a consumer's offsets; after an error, call `abort`."""
        self._gate.use(_refuse_outside)
        try:
            self._flight.flush(CALL_S)
        except errors.DeliveryFailed as failed:
            if failed.failed:
                raise
            # Else `commit_transaction` waits for the others, but not if the transaction has failed already.
        client = self._flight.client
        if offsets is not None and offsets.partitions:
            self._insist(partial(client.send_offsets_to_transaction, offsets.partitions, offsets.group))
        self._insist(client.commit_transaction)
        self._open = False

    def abort(self, error: BaseException) -> BaseException:
        """Abort the transaction because of `error`, and return the error to raise.

        That is `error`, unless it is only a consequence: of failed records, or of a newer producer.
        """
        self._gate.use(_refuse_outside)
        cause: errors.ClientError | None = None
        if self._ledger.transaction is not None:
            self._ledger.transaction.aborted = True  # before librdkafka reports the purged records
        try:
            self._insist(self._flight.client.abort_transaction)
            failed = self._ledger.failure(self._flight.counts)  # no later flush raises it
            if isinstance(error, errors.TransactionAborted) and failed is not None and failed.failed:
                cause = failed
        except errors.Fenced as fenced:
            cause = fenced if isinstance(error, errors.ClientError) else None
            self._ledger.failure(self._flight.counts)
        except errors.ClientError as failure:
            error.add_note(f"and besides: {failure}")
        finally:  # after Ctrl-C, too
            self._open = False
        return cause or error

    def raise_if_failed(self, error: KafkaException) -> None:
        """Raise why librdkafka refuses records if the open transaction cannot be committed any more."""
        if error.args[0].code() == KafkaError._STATE:  # noqa: SLF001
            raise errors.TransactionAborted(
                f"transactional.id {self._id}: the transaction has failed, and takes no more records "
                "(INVALID_TXN_STATE): leave its block, and try it again"
            ) from error

    def _insist(self, call: Callable[[float], object]) -> None:
        """Call librdkafka, again after retriable errors, until the transaction's timeout."""
        until_s = time.monotonic() + self._timeout_s
        while True:
            try:
                call(CALL_S)
            except (KafkaException, SystemError) as raised:
                error = raised if isinstance(raised, KafkaException) else raised.__cause__
                if not isinstance(error, KafkaException):
                    raise
                if not error.args[0].retriable() or time.monotonic() >= until_s:
                    why = translate(error, f"transactional.id {self._id}", self._bootstrap, is_topic=False)
                    if type(why) is errors.ClientError:
                        why = errors.ClientError(f"{why} ({error.args[0].name()})")
                    raise why from error
                time.sleep(BACKOFF_S)
            else:
                return


@contextmanager
def in_transaction(transactions: Transactions, consumer: Consumer[Any, Any] | None) -> Iterator[None]:
    """Commit a transaction at the end of the block, or abort it if the block raises."""
    if consumer is not None:
        consumer.enter_transaction()
    transactions.begin()
    try:
        yield
        offsets = None if consumer is None else consumer.transaction_offsets()
        transactions.commit(offsets)
    except BaseException as error:
        why = transactions.abort(error)
        if consumer is not None:
            with suppress(errors.Closed):
                consumer.rewind(to_committed=isinstance(why, errors.Unreachable))
        if why is not error:
            raise why from error
        raise
    if consumer is not None and offsets is not None:
        consumer.transaction_committed(offsets)


def _refuse_outside(*_record: object) -> NoReturn:
    raise errors.ClientError(
        "a producer with a transactional.id sends within a transaction only: `with producer.transaction():`"
    )
