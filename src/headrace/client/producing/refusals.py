"""Why librdkafka does not take a record that it is to send."""

from confluent_kafka import KafkaError

from headrace.client.errors import ClientError, NoSuchTopic, NotSerializable, translate
from headrace.client.errors_advice import why_no_topic


def refusal(error: Exception, topic: str, value: object, key: object, bootstrap: str) -> Exception:
    """What is wrong with the record, or `error` itself if that is not it."""
    if why_no_topic(topic):
        return NoSuchTopic(topic)
    if isinstance(error, TypeError):
        bytes_like = (bytes, str, type(None))
        if isinstance(key, bytes_like) and isinstance(value, bytes_like):
            return error
        field, bad = ("value", value) if isinstance(key, bytes_like) else ("key", key)
        why = f"{type(bad).__name__} is not bytes: give the producer a format, such as {field}=JSON"
        return NotSerializable(topic, field, why)
    if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
        size = len(value or b"") + len(key or b"")  # type: ignore[arg-type]
        return ClientError(
            f"a record of {size:,} bytes for topic {topic} is too large: "
            "raise message_max_bytes here and max.message.bytes of the topic"
        )
    return translate(error, topic, bootstrap)
