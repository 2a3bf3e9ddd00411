"""librdkafka's errors as those of our clients.

A module of its own: brokers and many commands use `errors` without librdkafka, which takes 10 ms to load.
"""

from typing import Final

from confluent_kafka import KafkaError, KafkaException

from headrace.client.errors import (
    ADVICE,
    AuthenticationFailed,
    ClientError,
    Fenced,
    NoSuchTopic,
    TransactionAborted,
    Unreachable,
    lowered,
    why_no_topic,
)
from headrace.protocol.errors import ErrorCode

# librdkafka's own codes begin with an underscore, and are not private.
_OUT_OF_REACH: Final = {
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._DESTROY_BROKER,  # noqa: SLF001  the broker has left the cluster while it was asked
}


_NO_TOPIC: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001
_NOT_AUTHENTICATED: Final = {KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._AUTHENTICATION}  # noqa: SLF001
_FENCED: Final = {KafkaError.PRODUCER_FENCED, KafkaError._FENCED}  # noqa: SLF001


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
    if kafka_error.txn_requires_abort():
        said = _sentence(kafka_error, what)
        return TransactionAborted(f"{said} ({kafka_error.name()}): the transaction is aborted, try it again")
    if code in _OUT_OF_REACH:
        return Unreachable(f"no broker answered in time at {bootstrap}")
    if code == KafkaError._MSG_TIMED_OUT:  # noqa: SLF001
        # These are likely causes: librdkafka does not report the broker's last answer.
        within = "in time" if timeout_ms is None else f"within {timeout_ms:,} ms"
        return Unreachable(
            f"{what}: not acknowledged {within} at {bootstrap}: fewer replicas are in sync than "
            "min.insync.replicas, or the leader is down (see `headrace cluster status`)"
        )
    if code in _NO_TOPIC:
        some = f"{what}: a topic or a partition does not exist (any more)"
        return NoSuchTopic(what, said=None if is_topic else some)
    if code in _FENCED:
        return Fenced(what)
    if code in _NOT_AUTHENTICATED:
        return AuthenticationFailed(_sentence(kafka_error, what))
    refusal = ClientError(_sentence(kafka_error, what))
    refusal.error_code = ErrorCode(code) if code in set(ErrorCode) else None
    return refusal


def _sentence(error: KafkaError, what: str) -> str:
    said = lowered(str(error.str()).removeprefix("Broker: ").removeprefix("Local: "))
    if error.code() == KafkaError.TOPIC_EXCEPTION and said == "invalid topic":
        said = why_no_topic(what) or said
    advice = ADVICE.get(error.name())
    about = said if said.startswith((what, f"topic '{what}'")) else f"{what}: {said}"
    return about if advice is None else f"{about}: {advice}"
