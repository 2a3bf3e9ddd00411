"""What can go wrong between a client and a cluster, each as a sentence."""

import socket
from typing import Final

from confluent_kafka import KafkaError, KafkaException

CONNECT_TIMEOUT_S: Final = 5.0


class ClientError(Exception):
    """The cluster refused, or could not be reached; the sentence says what and why."""


class Unreachable(ClientError):
    """No broker answers."""


class Refused(ClientError):
    """The broker does not take us for who we say we are, or we it."""


class NoSuchTopic(ClientError):
    """There is no topic of this name."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic {topic}")


class TopicExists(ClientError):
    """There is a topic of this name already."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} exists already")


class NoSuchGroup(ClientError):
    """There is no group of this name."""

    def __init__(self, group: str) -> None:
        super().__init__(f"there is no group {group}")


class GroupActive(ClientError):
    """The group has members, which would undo what was asked for, or have it pulled from under them."""

    def __init__(self, group: str, members: int | None = None) -> None:
        has = "members" if members is None else "1 member" if members == 1 else f"{members:,} members"
        super().__init__(
            f"group {group} has {has}: stop its consumers first "
            f"(`headrace group describe {group} --members` says who they are)"
        )


# librdkafka's own codes begin with an underscore, and are not private.
_OUT_OF_REACH: Final = {
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
}


def translate(error: KafkaException | KafkaError, what: str, bootstrap: str) -> ClientError:
    """Our word for librdkafka's error; `what` is the topic, group or whatever else it is about."""
    kafka_error = error.args[0] if isinstance(error, KafkaException) else error
    code = kafka_error.code()
    if code in _OUT_OF_REACH:
        return Unreachable(f"no broker answered in time at {bootstrap}")
    if code in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:  # noqa: SLF001
        return NoSuchTopic(what)
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return TopicExists(what)
    if code == KafkaError.GROUP_ID_NOT_FOUND:
        return NoSuchGroup(what)
    if code == KafkaError.NON_EMPTY_GROUP:
        return GroupActive(what)
    said = str(kafka_error.str()).removeprefix("Broker: ").removeprefix("Local: ")
    said = f"{said[:1].lower()}{said[1:]}"
    return ClientError(said if said.startswith((what, f"topic '{what}'")) else f"{what}: {said}")


def check_reachable(bootstrap: str) -> None:
    """Unreachable at once if nobody listens: librdkafka would go on trying until its time is up."""
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
    raise Unreachable(f"no broker answers at {bootstrap}: {why[:1].lower()}{why[1:]}")
