"""Advice by the name of an error, Kafka's or librdkafka's.

After most failures of a producer the record can be sent again. The errors that are named here would occur
again, until their cause is removed.
"""

import re
from collections.abc import Iterable
from typing import Final

AGAIN: Final = "send them again"
_MAKE_ANOTHER: Final = "this producer cannot be used any more: make another one, and send them again"
_NOT_ALLOWED: Final = "this user is not authorised: ask the administrator of the cluster"
_TOO_LARGE: Final = "raise max.message.bytes of the topic, or make the records smaller"
_TOO_FEW: Final = "fewer replicas than min.insync.replicas are in sync: see `headrace cluster status`"
_CREDENTIALS: Final = "check security.protocol, sasl.mechanism, sasl.username and sasl.password"

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
