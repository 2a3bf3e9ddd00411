"""Errors of the broker. Each becomes an error code in a response, except StartRefused."""

from headrace.coordinators.errors import CoordinatorError
from headrace.protocol.errors import ErrorCode, KafkaError


class StartRefused(Exception):
    """The broker cannot start with its configuration; the message says what to change."""


class NotLeader(KafkaError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
    """This broker is not the leader of the partition."""


class LeadershipInterrupted(NotLeader):
    """Another broker may have led the partition since a batch arrived here. A retry begins anew."""


class SeedRefused(KafkaError, code=ErrorCode.POLICY_VIOLATION):
    """This broker does not seed the replica; the other broker fetches every record instead."""


class NotEnoughReplicas(KafkaError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    """The ISR is smaller than min.insync.replicas, and the request has acks=all."""


class NotEnoughReplicasAfterAppend(KafkaError, code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
    """The ISR became smaller than min.insync.replicas after the leader had appended the batch."""


class RefusedByController(KafkaError):
    """The controller has refused the request with this code."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]


class RefusedByCoordinator(CoordinatorError):
    """The coordinator on another broker has refused the request with this code."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]


class TimedOut(KafkaError, code=ErrorCode.REQUEST_TIMED_OUT):
    """The operation has not completed within the timeout; it may still complete."""


class UnknownTopicId(KafkaError, code=ErrorCode.UNKNOWN_TOPIC_ID):
    """The topic id does not exist."""


class UnknownLeaderEpoch(KafkaError, code=ErrorCode.UNKNOWN_LEADER_EPOCH):
    """The leader epoch of the request is newer than the one that this broker knows."""


class TooOldForZstd(KafkaError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    """The topic is compressed with zstd, which this version of Fetch does not support."""
