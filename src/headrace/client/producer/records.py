"""Serialisation of keys and values, and the choice of a partition."""

from collections.abc import Callable
from typing import Any

from headrace.client.errors import ClientError, NoSuchTopic, NotSerializable
from headrace.client.producer.partitioning import ANY, Chosen, CountPartitions, Partitioner, Turns
from headrace.client.serializers.formats import Field, close, format_of


class Preparation:
    """The formats and the partitioner of one producer."""

    def __init__(
        self,
        key: object,
        value: object,
        registry: object,
        function: Partitioner | None,
        count: CountPartitions,
        *,
        in_turn: bool,
    ) -> None:
        """With `in_turn` records without a key go round robin, else librdkafka chooses."""
        self._key, self._value = format_of(key, registry), format_of(value, registry)
        self._chosen = None if function is None else Chosen(function, count)
        self.turns = Turns(count if in_turn else _anywhere)

    @property
    def needed(self) -> bool:
        """Whether records need more than round robin."""
        return (self._key, self._value, self._chosen) != (None, None, None)

    @property
    def adds_headers(self) -> bool:
        """Whether a format may add headers, such as a schema id."""
        return any(getattr(each, "adds_headers", False) for each in (self._key, self._value))

    def prepare(
        self, topic: str, value: Any, key: Any, headers: Any, partition: int | None
    ) -> tuple[Any, Any, int]:
        """Return value and key as bytes, and the partition, or ANY if librdkafka chooses it."""
        if not isinstance(topic, str):
            raise NoSuchTopic(topic)
        if partition is None:
            if self._chosen is not None:
                partition = self._chosen.choose(topic, key, value)
            else:
                partition = next(self.turns[topic]) if key is None else ANY
        if self._value is not None and value is not None:
            value = _serialized(self._value.serialize, value, topic, "value", headers)
        if self._key is not None and key is not None:
            key = _serialized(self._key.serialize, key, topic, "key", headers)
        return value, key, partition

    def may_block(self, topic: str, key: object, partition: int | None) -> bool:
        """Whether a request for partitions or for a schema may be needed."""
        if not isinstance(topic, str):
            raise NoSuchTopic(topic)
        self.look_again()
        if getattr(self._key, "blocking", False) or getattr(self._value, "blocking", False):
            return True
        if partition is not None or (self._chosen is None and key is not None):
            return False
        return topic not in (self.turns if self._chosen is None else self._chosen)

    def close(self) -> None:
        """Close the formats."""
        close(self._key, self._value)

    def look_again(self) -> None:
        """Forget numbers of partitions that are too old."""
        self.turns.look_again()
        if self._chosen is not None:
            self._chosen.look_again()


def _serialized(
    serialize: Callable[..., bytes | None], given: object, topic: str, field: Field, headers: Any
) -> bytes | None:
    try:
        return serialize(given, topic, field, headers)
    except ClientError:
        raise
    except Exception as error:
        raise NotSerializable(topic, field, f"{type(error).__name__}: {error}") from error


def _anywhere(_topic: str) -> int:
    return 0
