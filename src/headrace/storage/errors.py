"""What can go wrong with a log: refusals that have a number, and damage that takes a log offline."""

from collections.abc import Sequence
from pathlib import Path

from headrace.protocol.errors import ErrorCode, KafkaError


class StorageError(Exception):
    """The files cannot be trusted or used; the operator has to look. Stops at the log's owner."""


class CorruptLog(StorageError):
    """Data that had been flushed is no longer what was written."""

    def __init__(self, path: Path, position: int, why: object) -> None:
        super().__init__(f"{path} is corrupt at byte {position}: {why}")
        self.path, self.position, self.why = path, position, why


class CorruptIndex(StorageError):
    """An index is missing or contradicts its log; it is rebuilt from the log."""


class ForeignDirectory(StorageError):
    """The directory belongs to another broker, another cluster or a running process."""


class LogOffline(KafkaError):
    """An I/O error took this log out of service; no other log is touched."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class OffsetOutOfRange(KafkaError):
    """The offset lies before the log's start or after its end."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, offset: int, *, start: int, end: int) -> None:
        super().__init__(f"offset {offset} is not within {start} to {end}")
        self.offset, self.start, self.end = offset, start, end


class MessageTooLarge(KafkaError):
    """The batch is larger than the topic's `max.message.bytes`."""

    code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, size: int, *, limit: int) -> None:
        super().__init__(f"the batch has {size} bytes, max.message.bytes is {limit}")


class TooMuchToInspect(KafkaError):
    """A batch whose records the broker has to read holds more than it reads.

    Kafka has no such limit. MESSAGE_TOO_LARGE makes a Java producer split the batch and send its parts.
    """

    code = ErrorCode.MESSAGE_TOO_LARGE


class RecordListTooLarge(KafkaError):
    """The batch does not fit in one segment."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE

    def __init__(self, size: int, *, limit: int) -> None:
        super().__init__(f"the batches have {size} bytes, segment.bytes is {limit}")


class InvalidTimestamp(KafkaError):
    """The batch's timestamps are further from the broker's clock than the topic allows."""

    code = ErrorCode.INVALID_TIMESTAMP

    def __init__(self, why: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(why)
        self.record_errors = record_errors


class InvalidTopic(KafkaError):
    """The topic's name is one that Kafka refuses."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidProducerEpoch(KafkaError):
    """A newer instance of the same producer has written since."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH

    def __init__(self, producer_id: int, *, current: int, got: int) -> None:
        super().__init__(f"producer {producer_id} is at epoch {current}, got epoch {got}")


class OutOfOrderSequence(KafkaError):
    """The batch neither continues the producer's last one nor repeats a recent one."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def __init__(self, producer_id: int, *, expected: int, got: int) -> None:
        super().__init__(f"producer {producer_id} sent sequence {got}, expected {expected}")
        self.expected, self.got = expected, got


class InvalidTxnState(KafkaError):
    """The write does not fit the producer's transaction on this partition."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFenced(KafkaError):
    """A transaction marker comes from a coordinator that has been replaced."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED

    def __init__(self, producer_id: int, *, current: int, got: int) -> None:
        super().__init__(f"producer {producer_id}: coordinator epoch {got} is older than {current}")
