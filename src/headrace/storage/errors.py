"""Errors of a log: refusals with a Kafka error code, and damage that takes a log offline."""

from collections.abc import Sequence
from pathlib import Path

from headrace.protocol.errors import ErrorCode, KafkaError


class StorageError(Exception):
    """The files cannot be trusted or used, and an operator has to act. The owner of the log handles it."""


class CorruptLog(StorageError):
    """Data that had been flushed has changed."""

    def __init__(self, path: Path, position: int, why: object) -> None:
        super().__init__(f"{path} is corrupt at byte {position}: {why}")
        self.path, self.position, self.why = path, position, why


class CorruptIndex(StorageError):
    """An index is missing or contradicts its log; it is rebuilt from the log."""


class ForeignDirectory(StorageError):
    """The directory belongs to another broker, another cluster or a running process."""


class LogOffline(KafkaError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    """An I/O error has taken this log offline; other logs are not affected."""


class OffsetOutOfRange(KafkaError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    """The offset is before the log start offset or after the log end offset."""

    def __init__(self, offset: int, *, start: int, end: int) -> None:
        super().__init__(f"offset {offset} is not within {start} to {end} (OFFSET_OUT_OF_RANGE)")
        self.offset, self.start, self.end = offset, start, end


class MessageTooLarge(KafkaError, code=ErrorCode.MESSAGE_TOO_LARGE):
    """The batch is larger than the topic's `max.message.bytes`."""

    def __init__(self, size: int, *, limit: int) -> None:
        super().__init__(f"the batch has {size} bytes, max.message.bytes is {limit} (MESSAGE_TOO_LARGE)")


class TooMuchToInspect(KafkaError, code=ErrorCode.MESSAGE_TOO_LARGE):
    """The broker has to read the records of the batch, and the batch exceeds the limits for that.

    Kafka has no such limit. MESSAGE_TOO_LARGE makes a Java producer split the batch and send its parts.
    """


class RecordListTooLarge(KafkaError, code=ErrorCode.RECORD_LIST_TOO_LARGE):
    """The batch does not fit in one segment."""

    def __init__(self, size: int, *, limit: int) -> None:
        super().__init__(f"the batches have {size} bytes, segment.bytes is {limit} (RECORD_LIST_TOO_LARGE)")


class InvalidTimestamp(KafkaError, code=ErrorCode.INVALID_TIMESTAMP):
    """A timestamp is further from the broker's clock than the topic allows."""

    def __init__(self, why: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(f"{why} (INVALID_TIMESTAMP)")
        self.record_errors = record_errors


class InvalidTopic(KafkaError, code=ErrorCode.INVALID_TOPIC_EXCEPTION):
    """Kafka does not allow this topic name."""


class InvalidProducerEpoch(KafkaError, code=ErrorCode.INVALID_PRODUCER_EPOCH):
    """The producer epoch is fenced: a newer instance of the same producer has written since."""

    def __init__(self, producer_id: int, *, current: int, got: int) -> None:
        super().__init__(
            f"producer {producer_id}: epoch {got} is fenced, current is {current} (INVALID_PRODUCER_EPOCH)"
        )


class OutOfOrderSequence(KafkaError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """The batch is neither the next one of its producer nor a duplicate of a recent one."""

    def __init__(self, producer_id: int, *, expected: int, got: int) -> None:
        super().__init__(
            f"producer {producer_id} sent sequence {got}, expected {expected} (OUT_OF_ORDER_SEQUENCE_NUMBER)"
        )
        self.expected, self.got = expected, got


class TooManyProducers(KafkaError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    """The partition has so many producers that have written lately that a new one has to wait.

    Every client retries after NOT_ENOUGH_REPLICAS, and knows that the batch was not appended. After
    THROTTLING_QUOTA_EXCEEDED librdkafka and kafka-python give up.
    """

    def __init__(self, producer_id: int, *, count: int, live_ms: int) -> None:
        super().__init__(
            f"producer {producer_id} is new, and there are {count} producer ids that were used within "
            f"{live_ms} ms: retry later (NOT_ENOUGH_REPLICAS)"
        )


class InvalidTxnState(KafkaError, code=ErrorCode.INVALID_TXN_STATE):
    """The batch does not belong to the producer's open transaction on this partition."""


class TransactionCoordinatorFenced(KafkaError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED):
    """The transaction coordinator that wrote a marker has been replaced."""

    def __init__(self, producer_id: int, *, current: int, got: int) -> None:
        super().__init__(
            f"producer {producer_id}: coordinator epoch {got} is fenced, current is {current} "
            "(TRANSACTION_COORDINATOR_FENCED)"
        )
