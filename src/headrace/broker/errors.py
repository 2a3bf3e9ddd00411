"""Refusals that are the broker's own. Each becomes a code in a reply, except the one to start at all."""

from headrace.protocol.errors import ErrorCode, KafkaError


class StartRefused(Exception):
    """The broker cannot start as it is configured; the sentence says what to do."""


class NotLeader(KafkaError):
    """Another broker leads this partition, or none does."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class NotEnoughReplicas(KafkaError):
    """Fewer replicas are in sync than the topic wants for acks=all."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class NotEnoughReplicasAfterAppend(KafkaError):
    """The record is in the leader's log, and then too few replicas were left to commit it."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class RefusedByController(KafkaError):
    """The controller has said no, with a code of its own."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]


class TimedOut(KafkaError):
    """What was asked for has not happened in the time that was given; it may still."""

    code = ErrorCode.REQUEST_TIMED_OUT


class UnknownTopicId(KafkaError):
    """No topic has this id."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class UnknownLeaderEpoch(KafkaError):
    """The client's idea of the leader is newer than ours."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class TooOldForZstd(KafkaError):
    """Clients of this version of Fetch do not know zstd, and the topic has nothing else."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
