"""The errors of clients; each message says what happened and what to do."""

import socket
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from headrace.client.errors_advice import ADVICE, what_to_do, why_no_topic
from headrace.protocol.errors import ErrorCode

CONNECT_TIMEOUT_S: Final = 5.0


class ClientError(Exception):
    """The cluster refused a request, or could not be reached; the message says what and why."""

    error_code: ErrorCode | None = None  # the broker's, if a broker refused the request


class Unreachable(ClientError):
    """No broker answers, or none that can serve the request at the moment."""


class Retriable(Unreachable):
    """One broker gave no answer, or a retriable error: the request may succeed after a metadata refresh."""


class Refused(ClientError):
    """Authentication failed: the broker does not accept our credentials, or we do not trust the broker."""


class NoSuchTopic(ClientError):
    """There is no topic of this name, or the name is invalid."""

    def __init__(self, topic: object, *, said: str | None = None) -> None:
        """`said` is the message if it is not known which of several topics does not exist."""
        why = why_no_topic(topic)
        super().__init__(
            said or (f"there can be no topic {topic!r}: {why}" if why else f"there is no topic {topic}")
        )


class TopicExists(ClientError):
    """There is a topic of this name already."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} exists already")


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
            f"(`headrace group describe {group} --members` says who they are)"
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


# librdkafka's own codes begin with an underscore, and are not private.
_OUT_OF_REACH: Final = {
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
}


_NO_TOPIC: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001


def translate(
    error: KafkaException | KafkaError,
    what: str,
    bootstrap: str,
    *,
    is_topic: bool = True,
    timeout_ms: int | None = None,
) -> ClientError:
    """Return librdkafka's error as ours; `what` is the topic, or with is_topic=False anything else.

    `timeout_ms` is how long librdkafka tried to deliver a record.
    """
    kafka_error = error.args[0] if isinstance(error, KafkaException) else error
    code = kafka_error.code()
    if code in _OUT_OF_REACH:
        return Unreachable(f"no broker answered in time at {bootstrap}")
    if code == KafkaError._MSG_TIMED_OUT:  # noqa: SLF001
        return _not_acknowledged(what, bootstrap, timeout_ms)
    if code in _NO_TOPIC:
        some = f"{what}: a topic or a partition does not exist (any more)"
        return NoSuchTopic(what, said=None if is_topic else some)
    return ClientError(_sentence(kafka_error, what))


def _not_acknowledged(topic: str, bootstrap: str, timeout_ms: int | None) -> Unreachable:
    """Return an error with likely causes: librdkafka does not report the broker's last answer."""
    within = "in time" if timeout_ms is None else f"within {timeout_ms:,} ms"
    return Unreachable(
        f"{topic}: not acknowledged {within} at {bootstrap}: fewer replicas are in sync than "
        "min.insync.replicas, or the leader is down (`headrace cluster status` tells)"
    )


def _sentence(error: KafkaError, what: str) -> str:
    said = lowered(str(error.str()).removeprefix("Broker: ").removeprefix("Local: "))
    if error.code() == KafkaError.TOPIC_EXCEPTION and said == "invalid topic":
        said = why_no_topic(what) or said
    advice = ADVICE.get(error.name())
    about = said if said.startswith((what, f"topic '{what}'")) else f"{what}: {said}"
    return about if advice is None else f"{about}: {advice}"


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
