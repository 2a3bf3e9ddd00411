"""The errors of clients; each message says what happened and what to do."""

import re
import socket
from collections.abc import Iterable, Mapping
from typing import Any, Final

from headrace.protocol.errors import ErrorCode

CONNECT_TIMEOUT_S: Final = 5.0
AGAIN: Final = "send them again"
_MAKE_ANOTHER: Final = "this producer cannot be used any more: make another one, and send them again"
_NOT_ALLOWED: Final = "this user is not authorised: ask the administrator of the cluster"
_TOO_LARGE: Final = "raise max.message.bytes of the topic, or make the records smaller"
_TOO_FEW: Final = "fewer replicas than min.insync.replicas are in sync: see `headrace cluster status`"
_CREDENTIALS: Final = "check security.protocol, sasl.mechanism, sasl.username and sasl.password"

# Advice by the name of an error, Kafka's or librdkafka's. After other failures a producer may send the record
# again; these errors would occur again until their cause is removed.
ADVICE: Final = {
    "MSG_SIZE_TOO_LARGE": _TOO_LARGE,
    "RECORD_LIST_TOO_LARGE": "raise segment.bytes of the topic, or lower the producer's batch.size",
    "TOPIC_AUTHORIZATION_FAILED": _NOT_ALLOWED,
    "GROUP_AUTHORIZATION_FAILED": _NOT_ALLOWED,
    "CLUSTER_AUTHORIZATION_FAILED": _NOT_ALLOWED,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NOT_ALLOWED,
    "SASL_AUTHENTICATION_FAILED": _CREDENTIALS,
    "_AUTHENTICATION": _CREDENTIALS,
    "_UNKNOWN_PARTITION": "give no partition, or an existing one (`headrace topic describe` lists them)",
    "INVALID_REQUIRED_ACKS": "acks is 'all', 1 or 0",
    "INVALID_RECORD": (
        "the topic refuses the record: a compacted topic requires a key, one with schema validation "
        "the id of one of its schemas"
    ),
    "INVALID_TIMESTAMP": "the timestamp is further from now than message.timestamp.*.max.ms of the topic",
    "UNSUPPORTED_COMPRESSION_TYPE": "choose another compression: zstd, lz4, snappy, gzip or none",
    "POLICY_VIOLATION": "a policy of the cluster forbids it: ask its administrator",
    "NOT_ENOUGH_REPLICAS": _TOO_FEW,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": _TOO_FEW,
    "KAFKA_STORAGE_ERROR": "check the disk and the log of the partition's leader",
    "_PURGE_QUEUE": "close, or flush before that, with more time",
    "_PURGE_INFLIGHT": "close, or flush before that, with more time",
    "_FATAL": _MAKE_ANOTHER,
    "_FENCED": _MAKE_ANOTHER,
    "INVALID_PRODUCER_EPOCH": _MAKE_ANOTHER,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": _MAKE_ANOTHER,
}
_OF_MANY: Final = {  # for several records; the error of one record says it already
    "TOPIC_EXCEPTION": "send them to a topic with a valid name",
    "_MSG_TIMED_OUT": "remove the cause, then send them again (some may be written twice)",
    "UNKNOWN_TOPIC_OR_PART": "create the topic (`headrace topic create`), then send them again",
    "_UNKNOWN_TOPIC": "create the topic (`headrace topic create`), then send them again",
}

LONGEST_NAME: Final = 249
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


class ClientError(Exception):
    """The cluster refused a request, or could not be reached; the message says what and why."""

    error_code: ErrorCode | None = None  # the broker's, if a broker refused the request


class Unreachable(ClientError):
    """No broker answers, or none that can serve the request at the moment."""


class Retriable(Unreachable):
    """One broker gave no answer, or a retriable error: the request may succeed after a metadata refresh."""


class Refused(ClientError):
    """Authentication failed: the broker does not accept our credentials, or we do not trust the broker."""


class AuthenticationFailed(Refused):
    """The broker does not accept the user's credentials: user name, password or token are wrong."""

    error_code = ErrorCode.SASL_AUTHENTICATION_FAILED


class NoSuchTopic(ClientError):
    """There is no topic of this name, or the name is invalid."""

    def __init__(self, topic: object, *, said: str | None = None) -> None:
        """`said` is the message if it is not known which of several topics does not exist."""
        why = why_no_topic(topic)
        self.topic = topic if isinstance(topic, str) and said is None and not why else None
        super().__init__(
            said or (f"there can be no topic {topic!r}: {why}" if why else f"there is no topic {topic}")
        )


class TopicExists(ClientError):
    """There is a topic of this name already."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} exists already")


class NoSuchPartition(ClientError):
    """The topic exists, and has no partition with this number."""

    def __init__(self, topic: str, partition: int, last: int) -> None:
        super().__init__(f"{topic} has no partition {partition}, only 0 to {last}")


class NoSuchGroup(ClientError):
    """There is no group of this name."""

    def __init__(self, group: str) -> None:
        super().__init__(f"there is no group {group}")


class GroupActive(ClientError):
    """The group has members, and only a group without members may be changed."""

    def __init__(self, group: str, members: int | None = None) -> None:
        has = "members" if members is None else "1 member" if members == 1 else f"{members:,} members"
        super().__init__(
            f"group {group} has {has}: stop its consumers first "
            f"(`headrace group describe {group} --members` lists them)"
        )


class NoSuchTransactionalId(ClientError):
    """No transaction coordinator knows this transactional id."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            f"no coordinator knows transactional id {transactional_id} (TRANSACTIONAL_ID_NOT_FOUND)"
        )


class BadSetting(ClientError):
    """A setting that does not exist, or an invalid value."""


class WrongSetting(BadSetting):
    """A setting whose value is wrong, missing or not supported."""

    def __init__(self, setting: str, why: str) -> None:
        super().__init__(f"{setting} {why}")
        self.setting, self.why = setting, why


class Closed(ClientError):
    """The client was closed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the {what} is closed: make another one")


class DeliveryFailed(ClientError):
    """Not all records that were sent are acknowledged. Records that failed are not retried."""

    def __init__(
        self,
        *,
        failed: int,
        waiting: int,
        missing: int,
        sent: int,
        kinds: Mapping[str, int],
        errors: tuple[ClientError, ...],
    ) -> None:
        self.failed, self.waiting, self.missing, self.sent = failed, waiting, missing, sent
        self.kinds, self.errors = kinds, errors
        parts = []
        if failed:
            how = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
            first = f"; the first: {errors[0]}" if errors else ""
            advice = what_to_do(kinds, first)
            parts.append(f"{failed:,} failed ({how}{first}){advice and ': '}{advice}")
        if waiting:
            parts.append(f"{waiting:,} are still in flight: flush again, with more time")
        if missing:
            parts.append(f"{missing:,} are unaccounted for: this is a bug, please report it")
        super().__init__(f"of {sent:,} records sent, not all are acknowledged: {'; '.join(parts)}")


class TransactionAborted(ClientError):
    """The transaction is aborted: read_committed consumers see none of its records. It may be tried again."""


class Fenced(ClientError):
    """A newer producer has the same transactional.id, or a transaction timed out: this one is unusable."""

    error_code = ErrorCode.PRODUCER_FENCED

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: another producer with the same transactional.id has started, or a transaction took "
            f"longer than transaction.timeout.ms (PRODUCER_FENCED): {_MAKE_ANOTHER}"
        )


class NotSerializable(ClientError):
    """A key or a value cannot be serialised; nothing was sent."""

    def __init__(self, topic: str, field: str, why: str) -> None:
        super().__init__(f"the {field} for topic {topic} cannot be written: {why}")
        self.topic, self.field = topic, field


class NotReadable(ClientError):
    """A key or a value cannot be deserialised. `raw` is the record."""

    def __init__(self, *, topic: str, partition: int, offset: int, field: str, why: str, raw: Any) -> None:
        super().__init__(
            f"the {field} of {topic}-{partition} at offset {offset} cannot be read: {why} "
            "(a consumer passes over such records with on_bad='skip', or hands them to on_bad=FUNCTION)"
        )
        self.topic, self.partition, self.offset, self.field, self.raw = topic, partition, offset, field, raw


def raise_for(code: int, message: str | None = None, what: str | None = None) -> None:
    """Raise Retriable or ClientError with the broker's message or the error's name, unless `code` is NONE."""
    if code == ErrorCode.NONE:
        return
    kind = Retriable if code in set(ErrorCode) and ErrorCode(code).retriable else ClientError
    reason = ": ".join(filter(None, (what, message or error_name(code), ADVICE.get(error_name(code)))))
    error = kind(reason)
    error.error_code = ErrorCode(code) if code in set(ErrorCode) else None
    raise error


def error_name(code: int) -> str:
    """Return Kafka's name of an error, such as NOT_LEADER_OR_FOLLOWER."""
    return ErrorCode(code).name if code in set(ErrorCode) else f"error {code}"


def lowered(sentence: str) -> str:
    """Lower the first letter, to follow a colon, unless the first word is a name such as ZooKeeper or ISR."""
    first = sentence.partition(" ")[0]
    return sentence if first[1:] != first[1:].lower() else f"{sentence[:1].lower()}{sentence[1:]}"


def check_reachable(bootstrap: str) -> None:
    """Raise Unreachable at once if no broker listens: librdkafka would retry until its timeout."""
    why = "expected HOST:PORT,..."
    for address in bootstrap.split(","):
        host, colon, port = address.strip().rpartition(":")
        if not (colon and host and port.isdigit()):
            continue
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
        else:
            return
    raise Unreachable(f"no broker answers at {bootstrap}: {lowered(why)}")


def what_to_do(kinds: Iterable[str], said: str) -> str:
    """Return what to do about failures of these kinds, without advice that is in `said` already."""
    advice = dict.fromkeys(_OF_MANY.get(kind) or ADVICE.get(kind, AGAIN) for kind in kinds)
    return "; ".join(each for each in advice if each not in said)


def why_no_topic(topic: object) -> str:
    """Return why a topic cannot have this name; empty if it can."""
    if not isinstance(topic, str):
        return f"a topic is named by a str, not by {type(topic).__name__}"
    if _NAME.fullmatch(topic) and topic not in {".", ".."} and len(topic) <= LONGEST_NAME:
        return ""
    return f"a name has 1 to {LONGEST_NAME} ASCII letters, digits, '.', '_' and '-'"
