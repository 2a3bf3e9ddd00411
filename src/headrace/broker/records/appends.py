"""Appending the batches of clients: verification of transactions, inspection of records, and the lease.

    outcome = appends.append(partition, records, writer)

The outcome is there at once, unless the batch has to wait: for the transaction coordinator (KIP-890), or for
a thread that reads its records. Then it is a future, and the batch is appended even if its client has gone.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from headrace.broker.coordinators.transaction_verification import TransactionVerifier, refusal_of
from headrace.broker.errors import NotEnoughReplicas
from headrace.broker.meters import Meters
from headrace.broker.records.inspections import Inspections
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.pending_verification import Verification
from headrace.broker.replicas.purgatory import Commit
from headrace.broker.schemas.validation import Schemas
from headrace.broker.translate import FAILURES, Failure
from headrace.coordinators.decision import Producer
from headrace.protocol.batch import HEADER_SIZE, read_header
from headrace.protocol.errors import KafkaError
from headrace.protocol.fields import Buffer
from headrace.storage.append.inspection import PreparedBatch
from headrace.storage.errors import StorageError


class Writer(NamedTuple):
    """Who writes, and how: the same for all batches of a request."""

    acks_all: bool
    transactional_id: str | None
    adds_partitions: bool
    """Whether a batch adds its partition to the transaction."""
    knows_abortable: bool
    """Whether the client understands TRANSACTION_ABORTABLE."""


class Outcome(NamedTuple):
    """What has become of a batch: the error that has refused it, or its offsets in the leader's log."""

    error: Failure | None = None
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    commit: Commit | None = None
    """Done when the whole ISR has the batch, or with an error; None if nobody has to wait for that."""


class Appends:
    """Appends batches to the partitions that this broker leads."""

    def __init__(
        self,
        inspections: Inspections,
        verifier: TransactionVerifier,
        schemas: Schemas,
        meters: Meters,
        *,
        ensure_lease: Callable[[Partition], None],
        disk_failed: Callable[[], None],
    ) -> None:
        self._inspections = inspections
        self._verifier = verifier
        self._schemas = schemas
        self._meters = meters
        self._ensure_lease = ensure_lease
        self._disk_failed = disk_failed

    def append(
        self, partition: Partition, records: Buffer, writer: Writer
    ) -> "Outcome | asyncio.Future[Outcome]":
        """Append a batch; batches of a partition keep their order. `records` is copied if it has to wait."""
        try:
            if writer.transactional_id is not None:
                producer = _transactional_producer(records)
                if producer is not None:
                    partition.ensure_leader()
                    verification = self._verifier.required(
                        partition,
                        writer.transactional_id,
                        producer,
                        adds=writer.adds_partitions,
                        size=len(records),
                    )
                    if verification is not None:
                        verified = self._append_verified(partition, bytearray(records), writer, verification)
                        return asyncio.get_running_loop().create_task(verified)
            return self._append_or_inspect(partition, records, writer, None)
        except FAILURES as error:
            return self.refused(partition.id.topic, error)

    async def _append_verified(
        self, partition: Partition, records: Buffer, writer: Writer, verification: Verification
    ) -> Outcome:
        """Append the first batch of a transaction once its coordinator has confirmed the partition."""
        try:
            error = await verification.answer()
            if error is not None:
                raise refusal_of(error, knows_abortable=writer.knows_abortable, retried_as=NotEnoughReplicas)
            outcome = self._append_or_inspect(partition, records, writer, verification)
            return outcome if isinstance(outcome, Outcome) else await outcome
        except FAILURES as error:
            return self.refused(partition.id.topic, error)
        finally:
            self._verifier.release(partition, verification, len(records))

    def _append_or_inspect(
        self, partition: Partition, records: Buffer, writer: Writer, verification: Verification | None
    ) -> "Outcome | asyncio.Future[Outcome]":
        """Append a batch; queue it if its records must be read, or if others of the partition are queued."""
        if not self._inspections.must_wait(partition, records):
            return self._append(partition, records, writer, verification)
        partition.ensure_leader()
        return self._inspections.enqueue(
            partition, records, lambda prepared: self._append(partition, prepared, writer, verification)
        )

    def _append(
        self,
        partition: Partition,
        batch: Buffer | PreparedBatch | KafkaError,
        writer: Writer,
        verification: Verification | None,
    ) -> Outcome:
        """Append a batch, unless reading its records has failed."""
        if isinstance(batch, KafkaError):
            return self.refused(partition.id.topic, batch)
        try:
            # With acks=all the ISR has to fetch the batch, and would not fetch from a stale leader.
            if not writer.acks_all:
                self._ensure_lease(partition)
            appended, commit = partition.append(batch, acks_all=writer.acks_all, verification=verification)
        except FAILURES as error:
            return self.refused(partition.id.topic, error)
        if writer.acks_all:
            self._schemas.written(partition.id.topic)
        log_start_offset = partition.log.log_start_offset
        return Outcome(None, appended.base_offset, appended.log_append_time_ms, log_start_offset, commit)

    def refused(self, topic: str, error: Failure) -> Outcome:
        """Count a batch that is refused, and propose other leaders if its disk has failed."""
        if isinstance(error, StorageError):
            self._disk_failed()
        self._meters.of(topic).failed_produces += 1
        return Outcome(error)


def _transactional_producer(records: Buffer) -> Producer | None:
    """Return the producer of a transactional batch; None if it is another, or cannot be a batch."""
    if len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    return Producer(header.producer_id, header.producer_epoch) if header.is_transactional else None
