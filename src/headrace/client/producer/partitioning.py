"""The partition of a record: by its key, round robin without one, or by the user's function.

librdkafka hashes keys with murmur2, as Java's client does, so that all clients agree on the partition of a
key. Records without a key go to the partitions in turn.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from headrace.client.errors import ClientError, NoSuchTopic, NotSerializable, why_no_topic
from headrace.client.serializers.formats import Field, close, format_of
from headrace.client.settings import whole

T = TypeVar("T")

ANY: Final = -1  # librdkafka chooses, by the key
FRESH_S: Final = 60.0  # how long the number of partitions is cached

Partitioner = Callable[[str, Any, Any, int], int]  # (topic, key, value, how many partitions)
CountPartitions = Callable[[str], int]  # 0: the topic does not exist yet


class _Known(dict[str, T]):
    """The numbers of partitions of topics, cached for a minute."""

    def __init__(self, count: CountPartitions, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._count = count
        self._now_s = now_s
        self._asked_at_s = now_s()

    def _counted(self, topic: str) -> int:
        if why_no_topic(topic):  # for an empty name librdkafka would describe all topics
            raise NoSuchTopic(topic)
        return self._count(topic)

    def look_again(self) -> None:
        """Forget entries that are too old; called now and then."""
        if self._now_s() - self._asked_at_s >= FRESH_S:
            self._asked_at_s = self._now_s()
            self.clear()


class Turns(_Known[Iterator[int]]):
    """The partitions of each topic, round robin: `next(turns[topic])`. Threads may share it."""

    def __missing__(self, topic: str) -> Iterator[int]:
        count = self._counted(topic)
        if not count:  # the first record may create the topic: not cached
            return iter((ANY,))
        turn = itertools.cycle(range(count))
        self[topic] = turn
        return turn


class Chosen(_Known[int]):
    """Partitions by the user's function, whose results are checked."""

    def __init__(
        self, function: Partitioner, count: CountPartitions, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(count, now_s)
        self._function = function

    def __missing__(self, topic: str) -> int:
        count = self._counted(topic)
        if not count:
            raise ClientError(f"topic {topic} does not exist, so no partition can be chosen: create it")
        self[topic] = count
        return count

    def choose(self, topic: str, key: object, value: object) -> int:
        """Return the function's partition; ClientError if it does not exist."""
        count = self[topic]
        said: Any = self._function(topic, key, value, count)
        partition = whole(said)
        if partition is None or not 0 <= partition < count:
            raise ClientError(
                f"the partitioner returned {said!r} for topic {topic}, which has partitions 0 to {count - 1}"
            )
        return partition


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
        self.turns = Turns(count if in_turn else lambda _topic: 0)

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
