"""A message's key and value, as a type checker and a program see them."""

from typing import Any, assert_type

import confluent_kafka

from headrace.client.consumer.consumer import Consumer
from headrace.client.consumer.message import Keyed, Message


def record(key: bytes | None) -> Any:
    return confluent_kafka.Message(topic="orders", partition=0, offset=7, key=key, value=b"tea")


def test_a_message_without_a_key_has_none() -> None:
    message: Message[bytes, bytes] = Message((b"tea", record(None)))

    assert_type(message.value, bytes)
    assert_type(message.key, bytes | None)
    assert message.key is None


def test_a_deserialised_key_may_be_none_too() -> None:
    message: Message[str, bytes] = Keyed((b"tea", record(None), None))

    assert_type(message.key, str | None)
    assert message.key is None


def types_of_keys(plain: Consumer, keyed: Consumer[str, bytes]) -> None:
    """Checked by mypy, and not run."""
    for message in plain:
        assert_type(message.key, bytes | None)
    for other in keyed.read(stop_at_end=True):
        assert_type(other.key, str | None)
        assert_type(other.value, bytes)
