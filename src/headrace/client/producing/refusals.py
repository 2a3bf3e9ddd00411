"""Why librdkafka does not take a record that it is to send."""

from typing import Final

from confluent_kafka import KafkaError, KafkaException

from headrace.client.errors import BadSetting, ClientError, NoSuchTopic, NotSerializable, translate
from headrace.client.errors_advice import why_no_topic
from headrace.client.producing.arguments import check_partition

_TAKEN: Final = (bytes, str, type(None))


def refusal(  # noqa: PLR0917
    error: Exception, topic: str, value: object, key: object, partition: object, bootstrap: str
) -> Exception:
    """What is wrong with the record, or `error` itself if that is not it."""
    if why_no_topic(topic):
        return NoSuchTopic(topic)
    if isinstance(error, KafkaException):
        return _too_large(error, topic, value, key) or translate(error, topic, bootstrap)
    for field, given in (("key", key), ("value", value)):
        if not isinstance(given, _TAKEN):
            return NotSerializable(topic, field, _no_bytes(field, given))
    if isinstance(error, UnicodeError):
        return NotSerializable(topic, _field_of(error, value, key), f"it is no UTF-8: {error}")
    try:
        check_partition(partition)
    except BadSetting as bad:
        return bad
    return error


def _too_large(error: KafkaException, topic: str, value: object, key: object) -> ClientError | None:
    if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
        return None
    size = len(value or b"") + len(key or b"")  # type: ignore[arg-type]
    return ClientError(
        f"a record of {size:,} bytes for topic {topic} is too large: "
        "raise message_max_bytes here and max.message.bytes of the topic"
    )


def _no_bytes(field: str, given: object) -> str:
    kind = type(given).__name__
    if isinstance(given, bytearray | memoryview):
        return f"{kind} is not bytes, and may change before it is sent: give bytes({field})"
    return f"{kind} is not bytes: give the producer a format, such as {field}=JSON"


def _field_of(error: UnicodeError, value: object, key: object) -> str:
    said = error.args[1] if isinstance(error, UnicodeEncodeError) else None
    return "value" if said == value else "key" if said == key else "headers"
